// One process at a time in a folder: a lock file that says who holds it, and that a crashed holder does not keep.

import { randomUUID } from "node:crypto";
import { link, mkdir, readFile, rm, rmdir, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { AppError } from "../errors.ts";

type Holder = { readonly pid: number; readonly processStart: string | undefined; readonly command: string };

/** A takeover lasts for milliseconds; one that is older was left by a crash. */
const TAKEOVER_MS_MAX = 10_000;

/**
 * Returns the function that releases the lock. Throws `database` while another process holds it, and says which; and where
 * the folder can't be made or written to.
 */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const file = path.join(folder, "lock");
  const mine = path.join(folder, `lock.${randomUUID()}`);
  const self: Holder = {
    pid: process.pid,
    processStart: await processStart(process.pid),
    command: process.argv.slice(2, 3).join(" "),
  };
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(mine, JSON.stringify(self), { mode: 0o600 });
  } catch (cause) {
    throw new AppError(
      "database",
      `the embedded database can't be kept in ${folder}; set DATABASE_URL to a Postgres server, or start where this folder can be written`,
      { cause },
    );
  }
  try {
    // Linking a finished file either makes the lock or fails: nobody ever reads half a lock.
    if (!(await linked(mine, file))) await takeOver(folder, mine, file);
  } finally {
    await rm(mine, { force: true });
  }
  return () => rm(file, { force: true });
}

/** Two processes that both find a dead holder must not both remove it: the second would remove the lock of the first. */
async function takeOver(folder: string, mine: string, file: string): Promise<void> {
  const takeover = path.join(folder, "lock.takeover");
  await mkdir(takeover).catch(async () => {
    const age =
      Date.now() -
      (await stat(takeover)
        .then((stats) => stats.mtimeMs)
        .catch(() => Date.now()));
    if (age > TAKEOVER_MS_MAX) await rmdir(takeover).catch(() => {});
    throw held(folder, undefined);
  });
  try {
    const holder = await readHolder(file);
    if (holder && (await isAlive(holder))) throw held(folder, holder);
    await rm(file, { force: true });
    if (!(await linked(mine, file))) throw held(folder, await readHolder(file));
  } finally {
    await rmdir(takeover).catch(() => {});
  }
}

function held(folder: string, holder: Holder | undefined): AppError {
  const who = holder
    ? `process ${holder.pid}${holder.command ? ` (usage-export ${holder.command})` : ""}`
    : "another process";
  return new AppError(
    "database",
    `the embedded database in ${folder} is in use by ${who}; it serves one process at a time: wait for it, stop it, or set DATABASE_URL to a Postgres server`,
  );
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

async function readHolder(file: string): Promise<Holder | undefined> {
  try {
    const { pid, processStart: start, command } = JSON.parse(await readFile(file, "utf8"));
    return { pid: Number(pid), processStart: start, command: String(command) };
  } catch {
    return undefined;
  }
}

/** A number is used again after a reboot or in a container, so the moment the process started counts as well. */
async function isAlive({ pid, processStart: start }: Holder): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
  return start === (await processStart(pid));
}

/** Clock ticks from boot to the start of a process, and the boot's own number; undefined where the system has no /proc. */
async function processStart(pid: number): Promise<string | undefined> {
  try {
    const [fields, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, "utf8"),
      readFile("/proc/sys/kernel/random/boot_id", "utf8"),
    ]);
    // The second field is the command in parentheses and may hold spaces; the start is the 22nd.
    const start = fields.slice(fields.lastIndexOf(")") + 2).split(" ")[19];
    return `${start} ${boot.trim()}`;
  } catch {
    return undefined;
  }
}
