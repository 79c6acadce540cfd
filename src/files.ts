// Reads files within a time limit, and replaces files atomically: a reader sees the old content or the new one, never a part of it.

import { constants } from "node:fs";
import { open, rename, rm } from "node:fs/promises";
import path from "node:path";

const READ_MS_MAX = 5_000;

/** Folders whose current work has exceeded its time limit and still runs. */
const silentFolders = new Set<string>();
const newestWorkByFolder = new Map<string, Promise<unknown>>();

/**
 * A file call on a network share whose server is gone blocks one of this process's few threads for ever. So work on the files of a folder
 * runs one at a time. While one piece of work hangs beyond its limit, further work fails at once.
 */
export async function withFileLimit<T>(file: string, msMax: number, work: () => Promise<T>): Promise<T> {
  const folder = path.dirname(path.resolve(file));
  const previous = newestWorkByFolder.get(folder) ?? Promise.resolve();
  const result = previous.catch(() => {}).then(() => withinLimit(folder, msMax, work));
  newestWorkByFolder.set(folder, result);
  return result;
}

async function withinLimit<T>(folder: string, msMax: number, work: () => Promise<T>): Promise<T> {
  const timedOut = fileError("ETIMEDOUT", "its file system does not answer");
  if (silentFolders.has(folder)) throw timedOut;
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    silentFolders.add(folder);
    reject(timedOut);
  }, msMax);
  const done = work().finally(() => {
    clearTimeout(timer);
    silentFolders.delete(folder);
  });
  return Promise.race([done, late]);
}

/** Every error has a code, such as ENOENT, or ETIMEDOUT if the file system does not answer. */
export async function readRegularFile(file: string): Promise<Buffer> {
  return withFileLimit(file, READ_MS_MAX, async () => {
    // O_NONBLOCK: opening a pipe does not wait for its other end.
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const stats = await handle.stat();
    if (!stats.isFile()) throw fileError(stats.isDirectory() ? "EISDIR" : "ENXIO", "not a regular file");
    // Without `await`, a read that fails while the file is being closed would be an unhandled rejection, which ends the process.
    return await handle.readFile();
  });
}

function fileError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

export type Pieces = Iterable<string> | AsyncIterable<string | Uint8Array>;

/** Writes the pieces to `temporary`, which must not exist, and renames it to `target` when it is on the disk. A failure changes nothing. */
export async function replaceFile(
  target: string,
  pieces: Pieces,
  { temporary, mode, signal }: { readonly temporary: string; readonly mode?: number; readonly signal?: AbortSignal },
): Promise<void> {
  const handle = await open(temporary, "wx", mode);
  try {
    try {
      for await (const piece of pieces) await handle.writeFile(piece, { signal });
      await handle.sync();
    } finally {
      await handle.close();
    }
    signal?.throwIfAborted();
    await rename(temporary, target);
  } catch (error) {
    // An error of the removal would hide the first one.
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
}
