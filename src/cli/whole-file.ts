// Writes a file that is there whole or not at all, so that nobody opens half of it.

import { randomBytes } from "node:crypto";
import { open, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { AppError } from "../errors.ts";

/** Throws `config` where no file can ever be at this place, before anything is done for it. */
export async function checkPlace(file: string, option: string): Promise<void> {
  const folder = path.dirname(path.resolve(file));
  const parent = await stat(folder).catch(() => undefined);
  if (!parent?.isDirectory()) {
    throw new AppError(
      "config",
      `${option}: expected a file in a folder that is there, got ${file}; make ${folder} first`,
    );
  }
  const existing = await stat(file).catch(() => undefined);
  if (existing && !existing.isFile()) {
    throw new AppError("config", `${option}: expected the name of a file, got ${file}, which is something else`);
  }
}

type Pieces = Iterable<string> | AsyncIterable<string | Uint8Array>;

/** Written beside its place and put there at once. What stood there before stays where that fails, or is stopped. */
export async function writeWholeFile(file: string, pieces: Pieces, signal: AbortSignal): Promise<void> {
  // Where the name is a link, it is to stay one.
  const target = await realpath(file).catch(() => file);
  const next = path.join(path.dirname(target), `.${path.basename(target)}.${randomBytes(6).toString("hex")}`);
  try {
    const handle = await open(next, "wx");
    try {
      await writeFile(handle, pieces, { signal });
      await handle.sync();
    } finally {
      await handle.close();
    }
    signal.throwIfAborted();
    await rename(next, target);
  } catch (error) {
    await rm(next, { force: true });
    throw error;
  }
}
