// A program that runs PgBouncer in front of the server at POOLED_SERVER_URL until standard input ends. It prints PgBouncer's address.

import { spawn } from "node:child_process";
import { chown, mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { freePort, keepServer, type Owner, serverOwner } from "./keeper.ts";
import { POOL_SIZE, POOLER_PROGRAM } from "./pooler.ts";

const { POOLED_SERVER_URL: serverUrl = "" } = process.env;

const folder = await mkdtemp(path.join(tmpdir(), "usage-export-pgbouncer-"));
const logFile = path.join(folder, "pgbouncer.log");
const settingsFile = path.join(folder, "pgbouncer.ini");
const usersFile = path.join(folder, "users.txt");
try {
  // The driver parses the URL, and adds what the environment (PGPASSWORD and so on) says.
  const { host, port: serverPort, user = "", password, database } = new pg.Client({ connectionString: serverUrl });
  const port = await freePort();
  // Every other setting has PgBouncer's default.
  const settings = [
    "[databases]",
    `* = host=${quoted(host, "'")} port=${serverPort}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "pool_mode = transaction",
    `default_pool_size = ${POOL_SIZE}`,
    "max_client_conn = 500",
    `auth_type = ${password ? "scram-sha-256" : "trust"}`,
    `auth_file = ${usersFile}`,
  ];
  const owner = serverOwner();
  await writeFor(owner, settingsFile, `${settings.join("\n")}\n`);
  // The user has the same password at PgBouncer as at the server.
  await writeFor(owner, usersFile, `${quoted(user, '"')} ${quoted(password || "", '"')}\n`);
  if (owner.uid !== undefined && owner.gid !== undefined) await chown(folder, owner.uid, owner.gid);

  const log = await open(logFile, "a");
  const pooler = spawn(POOLER_PROGRAM, [settingsFile], { ...owner, cwd: folder, stdio: ["ignore", log.fd, log.fd] });
  await log.close();
  const login = `${encodeURIComponent(user)}:${encodeURIComponent(password ?? "")}`;
  // SIGQUIT would make PgBouncer dump its core, with the passwords in it.
  await keepServer(pooler, `postgres://${login}@127.0.0.1:${port}/${database}`, logFile, "SIGKILL");
} finally {
  await rm(folder, { recursive: true });
}

/** Only the owner may read the files, because one of them contains the server's password. */
async function writeFor({ uid, gid }: Owner, file: string, text: string): Promise<void> {
  await writeFile(file, text, { mode: 0o600 });
  if (uid !== undefined && gid !== undefined) await chown(file, uid, gid);
}

function quoted(value: string, mark: string): string {
  return mark + value.replaceAll(mark, mark + mark) + mark;
}
