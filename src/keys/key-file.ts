// A sink that is a file. A reader sees the old key or the new one, whole, also after the power fails.

import { randomBytes } from "node:crypto";
import { lstat, mkdir, open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";

const MODE_FILE = 0o600;
const MODE_FOLDER = 0o700;

/** The name of the program's own file beside a key file; nobody chooses such a name by chance. */
function ownFile(target: string, what: string): string {
  return `${target}.usage-export-${what}`;
}

export async function testKeyFile(file: string): Promise<void> {
  try {
    const target = await prepare(file);
    const existing = await stat(target).catch(() => undefined);
    if (existing && !existing.isFile()) throw new Error("it is not a file");
    // A random name, because an existing file beside the key file may belong to anybody.
    const probe = ownFile(target, `${randomBytes(6).toString("hex")}.probe`);
    try {
      await writeWhole(probe, "");
    } finally {
      await rm(probe, { force: true });
    }
  } catch (cause) {
    throw new AppError("delivery", `the key file ${file} can't be written`, { cause });
  }
}

/** The text next to it always has the same name, so that what a crash leaves behind is gone with the next delivery. */
export async function writeKeyFile(file: string, key: Secret): Promise<void> {
  try {
    const target = await prepare(file);
    const next = ownFile(target, "next");
    await removeOwn(next);
    await writeWhole(next, `${key.reveal()}\n`);
    await rename(next, target);
    await syncFolder(path.dirname(target));
  } catch (cause) {
    throw new AppError("delivery", `the key file ${file} could not be written`, { cause });
  }
}

/**
 * Removes the part of a key file that a crash left. Anything else with that name is reported and not deleted: it is not the
 * program's.
 */
async function removeOwn(file: string): Promise<void> {
  const existing = await lstat(file).catch(() => undefined);
  if (!existing) return;
  const isOwn = existing.isFile() && existing.uid === process.getuid?.() && (existing.mode & 0o077) === 0;
  if (!isOwn) throw new Error(`${file} is in the way, and this program did not make it: remove it`);
  await rm(file);
}

/** Makes the folder. Returns the file itself where the name is a link, which is to stay one. */
async function prepare(file: string): Promise<string> {
  await makeFolder(path.dirname(file));
  return realpath(file).catch(() => file);
}

/** Creates one folder at a time: if a folder can't be created, as in /proc, Node's recursive mkdir tries for ever. */
async function makeFolder(folder: string): Promise<void> {
  const missing: string[] = [];
  for (let at = folder; !(await isFolder(at)); at = path.dirname(at)) missing.unshift(at);
  for (const each of missing) {
    await mkdir(each, { mode: MODE_FOLDER }).catch(async (error: unknown) => {
      // Another process may have created the folder in the meantime.
      if (!(await isFolder(each))) throw error;
    });
  }
}

async function isFolder(folder: string): Promise<boolean> {
  try {
    if ((await stat(folder)).isDirectory()) return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT" && folder !== path.dirname(folder)) {
      return false;
    }
    throw error;
  }
  throw new Error(`${folder} is not a folder`);
}

/** Fails if the file exists: an existing file is never written into. */
async function writeWhole(file: string, text: string): Promise<void> {
  const handle = await open(file, "wx", MODE_FILE);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Without this the rename itself may be lost. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * What is wrong with the file. Undefined if it holds the key, or if this user may not read it because it now belongs to the
 * program that reads the key. Without a key, only the existence of the file is checked.
 */
export async function keyFileFault(file: string, key: Secret | undefined): Promise<string | undefined> {
  try {
    const text = await readFile(file, "utf8");
    return key && text.trim() !== key.reveal() ? "holds something else than the key in use" : undefined;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "unknown";
    if (code === "EACCES" || code === "EPERM") return undefined;
    return code === "ENOENT" || code === "ENOTDIR" ? "is gone" : `can't be read (${code})`;
  }
}
