// Allows one process at a time in a folder. The lock is one of the operating system, on an open file: it ends with its process,
// however that ends, and works across containers that share the folder, where process ids mean nothing.

import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { AppError } from "../../errors.ts";

const SQLITE_BUSY = 5;

/**
 * Returns the function that releases the lock. Throws `database` if another process holds the lock (the error names it), or if the
 * folder can't be created or written to.
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
    // The journal is kept in memory, because SQLite would otherwise create a journal file beside the lock file.
    lock.exec("pragma journal_mode = memory; begin exclusive");
    const command = process.argv.slice(2, 3).map((name) => ` (usage-export ${name})`);
    await writeFile(holderFile, `process ${process.pid}${command} on ${os.hostname()}`, { mode: 0o600 });
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
 * Node has no file locks of its own, but its SQLite locks a file with fcntl (LockFileEx on Windows). Nothing is ever written to
 * the file. It is never deleted: a process that waits for the old file would then hold a lock that nobody else sees. No other
 * code of this process may open the file, because closing it again would release the lock.
 */
async function openLock(file: string): Promise<DatabaseSync> {
  await writeFile(file, "", { flag: "a", mode: 0o600 });
  const { DatabaseSync } = await import("node:sqlite");
  return new DatabaseSync(file, { timeout: 0 });
}

async function refusal(folder: string, holderFile: string, cause: unknown): Promise<AppError> {
  const code = cause instanceof Error && "errcode" in cause ? cause.errcode : undefined;
  if (code !== SQLITE_BUSY) {
    return new AppError(
      "database",
      `the embedded database can't be kept in ${folder}: files can't be locked there; set DATABASE_URL to a Postgres server, or start in a folder on a local disk`,
      { cause },
    );
  }
  // The text is only shown, never relied on.
  const holder = (await readFile(holderFile, "utf8").catch(() => "")) || "another process";
  return new AppError(
    "database",
    `the embedded database in ${folder} is in use by ${holder}; it serves one process at a time: wait for it, stop it, or set DATABASE_URL to a Postgres server`,
  );
}
