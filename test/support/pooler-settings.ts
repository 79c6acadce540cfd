// The settings of a test run's pooler: the defaults of its package except for the mode and the sizes.

export type PooledServer = {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** Undefined if the server asks for none. */
  readonly password: string | undefined;
};

/** The text of pgbouncer.ini, and that of the file of its users, who have the same password as at the server. */
export function poolerFiles(
  { host, port, user, password }: PooledServer,
  at: { readonly port: number; readonly usersFile: string; readonly poolSize: number },
): { readonly settings: string; readonly users: string } {
  const settings = [
    "[databases]",
    `* = host=${quoted(host, "'")} port=${port}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${at.port}`,
    "unix_socket_dir =",
    "pool_mode = transaction",
    `default_pool_size = ${at.poolSize}`,
    "max_client_conn = 500",
    `auth_type = ${password === undefined ? "trust" : "scram-sha-256"}`,
    `auth_file = ${at.usersFile}`,
  ];
  const users = `${quoted(user, '"')} ${quoted(password ?? "", '"')}`;
  return { settings: `${settings.join("\n")}\n`, users: `${users}\n` };
}

function quoted(value: string, mark: string): string {
  return mark + value.replaceAll(mark, mark + mark) + mark;
}
