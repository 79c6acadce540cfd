// How the pooler of a test run is set up: as its package sets it up, but for the mode and for sizes.

export type PooledServer = {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** Undefined where the server asks for none. */
  readonly password: string | undefined;
};

/** Its settings (pgbouncer.ini) and its users, who are let in by the password that the server has for them. */
export function poolerFiles(
  { host, port, user, password }: PooledServer,
  at: { readonly port: number; readonly usersFile: string; readonly poolSize: number; readonly version: string },
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
    // Earlier versions have no such setting, and never keep a prepared statement.
    ...(keepsStatements(at.version) ? ["max_prepared_statements = 0"] : []),
  ];
  const users = `${quoted(user, '"')} ${quoted(password ?? "", '"')}`;
  return { settings: `${settings.join("\n")}\n`, users: `${users}\n` };
}

/** From 1.21 on. */
function keepsStatements(version: string): boolean {
  const [major = 0, minor = 0] = (/\d+\.\d+/.exec(version)?.[0] ?? "").split(".").map(Number);
  return major > 1 || minor >= 21;
}

function quoted(value: string, mark: string): string {
  return mark + value.replaceAll(mark, mark + mark) + mark;
}
