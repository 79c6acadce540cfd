// A sink that is a file. A reader sees the old key or the new one, whole, also after the power fails.

import { randomBytes } from "node:crypto";
import { lstat, mkdir, open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";

const MODE_FILE = 0o600;
const MODE_FOLDER = 0o700;

/** The name of a file of our own beside a key file: nobody calls one so by chance. */
function ownFile(target: string, what: string): string {
  return `${target}.usage-export-${what}`;
}

export async function testKeyFile(file: string): Promise<void> {
  try {
    const target = await prepare(file);
    const existing = await stat(target).catch(() => undefined);
    if (existing && !existing.isFile()) throw new Error("it is not a file");
    // A name that nobody has: what stands beside the file may be anybody's.
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

/** What a crash left of a key. Anything else of that name is in the way, and not ours to delete. */
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

/** Folder by folder: where one can't be made, as in /proc, Node's own way to make several tries for ever. */
async function makeFolder(folder: string): Promise<void> {
  const missing: string[] = [];
  for (let at = folder; !(await isFolder(at)); at = path.dirname(at)) missing.unshift(at);
  for (const each of missing) {
    await mkdir(each, { mode: MODE_FOLDER }).catch(async (error: unknown) => {
      // Another process may have made it in the meantime.
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

/** A file of this name that is there already is not written into. */
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
 * What is wrong with what the file holds; undefined where it holds the key, and where this user may not read it, as when it was
 * given to its reader. Without a key only whether it is there is told.
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
