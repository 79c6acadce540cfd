// Replaces a file atomically: a reader sees the old content or the new one, never a part of it.

import { open, rename, rm } from "node:fs/promises";

export type Pieces = Iterable<string> | AsyncIterable<string | Uint8Array>;

/**
 * Writes the pieces to the file `temporary`, which must not exist yet, and renames it to `target` when they are on the disk. After a
 * failure or an abort `target` is as it was, and `temporary` is removed.
 */
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
    // The first error is the one to report.
    await rm(temporary, { force: true }).catch(() => {});
    throw error;
  }
}
