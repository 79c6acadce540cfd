// A sink that is a file. A reader sees the old key or the new one, whole, also after the power fails.

import { mkdir, open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";

const MODE_FILE = 0o600;
const MODE_FOLDER = 0o700;

export async function testKeyFile(file: string): Promise<void> {
  try {
    const target = await prepare(file);
    const existing = await stat(target).catch(() => undefined);
    if (existing && !existing.isFile()) throw new Error("it is not a file");
    const probe = `${target}.probe`;
    await writeWhole(probe, "");
    await rm(probe, { force: true });
  } catch (cause) {
    throw new AppError("delivery", `the key file ${file} can't be written`, { cause });
  }
}

/** The text next to it always has the same name, so that what a crash leaves behind is gone with the next delivery. */
export async function writeKeyFile(file: string, key: Secret): Promise<void> {
  try {
    const target = await prepare(file);
    const next = `${target}.next`;
    await writeWhole(next, `${key.reveal()}\n`);
    await rename(next, target);
    await syncFolder(path.dirname(target));
  } catch (cause) {
    throw new AppError("delivery", `the key file ${file} could not be written`, { cause });
  }
}

/** Makes the folder. Returns the file itself where the name is a link, which is to stay one. */
async function prepare(file: string): Promise<string> {
  await mkdir(path.dirname(file), { recursive: true, mode: MODE_FOLDER });
  return realpath(file).catch(() => file);
}

/** A file of this name that someone else put there, or that a crash left, is not written into. */
async function writeWhole(file: string, text: string): Promise<void> {
  await rm(file, { force: true });
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

/** What is wrong with what the file holds; undefined where it holds the key. Without a key only whether it is there is told. */
export async function keyFileFault(file: string, key: Secret | undefined): Promise<string | undefined> {
  try {
    const text = await readFile(file, "utf8");
    return key && text.trim() !== key.reveal() ? "holds something else than the key in use" : undefined;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "unknown";
    return code === "ENOENT" || code === "ENOTDIR" ? "is gone" : `can't be read (${code})`;
  }
}
