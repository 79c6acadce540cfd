// One process at a time in a folder. The lock is one of the operating system, on an open file: it ends with its process, however
// that ends, and holds in every container that shares the folder, where the numbers of processes mean nothing.

import { mkdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { z } from "zod";
import { AppError } from "../errors.ts";

/** Says who holds the lock; only shown, never believed. */
const Holder = z.object({ pid: z.number(), command: z.string(), host: z.string(), pidNamespace: z.string() });
type Holder = z.output<typeof Holder>;

const SQLITE_BUSY = 5;
const SQLITE_NOTADB = 26;

/**
 * Returns the function that releases the lock. Throws `database` while another process holds it, and says which; where the
 * folder can't be made or written to; and where it is not certain that nobody else holds it.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const holderFile = path.join(folder, "lock.holder");
  let lock: DatabaseSync;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    lock = await openLock(path.join(folder, "lock"));
  } catch (cause) {
    throw new AppError(
      "database",
      `the embedded database can't be kept in ${folder}; set DATABASE_URL to a Postgres server, or start where this folder can be written`,
      { cause },
    );
  }
  try {
    // In memory: else there would be a journal beside it.
    lock.exec("pragma journal_mode = memory; begin exclusive");
    await writeFile(holderFile, JSON.stringify(await describeSelf()), { mode: 0o600 });
  } catch (error) {
    lock.close();
    throw await refusal(folder, holderFile, error);
  }
  return async () => {
    await rm(holderFile, { force: true });
    lock.close();
  };
}

/**
 * Node has no file locks of its own, but brings SQLite along, which locks its file by fcntl (LockFileEx on Windows). Nothing is
 * ever written to it: the file stays empty, and stays where it is, as to remove it would take the lock's meaning from whoever
 * waits at it. No other code of this process may open it: closing it again would release the lock.
 */
async function openLock(file: string): Promise<DatabaseSync> {
  await writeFile(file, "", { flag: "a", mode: 0o600 });
  const { DatabaseSync } = await import("node:sqlite");
  return new DatabaseSync(file, { timeout: 0 });
}

async function refusal(folder: string, holderFile: string, cause: unknown): Promise<AppError> {
  const code = cause instanceof Error && "errcode" in cause ? cause.errcode : undefined;
  if (code === SQLITE_NOTADB) {
    return new AppError(
      "database",
      `the embedded database in ${folder} may be in use: an earlier version of usage-export left the file "lock" in it. Make sure that none of its processes runs there, then delete that file`,
    );
  }
  if (code !== SQLITE_BUSY) {
    return new AppError(
      "database",
      `the embedded database can't be kept in ${folder}: files can't be locked there; set DATABASE_URL to a Postgres server, or start in a folder on a local disk`,
      { cause },
    );
  }
  return new AppError(
    "database",
    `the embedded database in ${folder} is in use by ${await describeHolder(holderFile)}; it serves one process at a time: wait for it, stop it, or set DATABASE_URL to a Postgres server`,
  );
}

async function describeSelf(): Promise<Holder> {
  const command = process.argv.slice(2, 3).join(" ");
  return { pid: process.pid, command, host: os.hostname(), pidNamespace: await pidNamespace() };
}

async function describeHolder(file: string): Promise<string> {
  const holder = await readFile(file, "utf8")
    .then((text) => Holder.parse(JSON.parse(text)))
    .catch(() => undefined);
  if (!holder) return "another process";
  const isNear = holder.host === os.hostname() && holder.pidNamespace === (await pidNamespace());
  const where = isNear ? "" : ` of another container or machine, ${holder.host}`;
  return `process ${holder.pid}${holder.command ? ` (usage-export ${holder.command})` : ""}${where}`;
}

/** Within one of these a process has one number. Empty where the system has none. */
async function pidNamespace(): Promise<string> {
  return readlink("/proc/self/ns/pid").catch(() => "");
}
