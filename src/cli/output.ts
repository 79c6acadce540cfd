// Writes a command's output: atomically to a file, or piece by piece to standard output; and formats instants for people.

import { randomBytes } from "node:crypto";
import { open, realpath, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { AppError } from "../errors.ts";

/** Throws `config` where no file can ever be at this place, before anything is done for it. */
export async function checkOutputPath(file: string, option: string): Promise<void> {
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

/**
 * Written beside its place and put there at once. What stood there before stays where that fails, or is stopped. Throws
 * `delivery` where the file can't be written; a failure of where the pieces come from passes as it is.
 */
export async function writeFileAtomically(file: string, pieces: Pieces, signal: AbortSignal): Promise<void> {
  const written = <T>(step: Promise<T>): Promise<T> =>
    step.catch((cause) => {
      signal.throwIfAborted();
      throw new AppError("delivery", `the file ${file} could not be written`, { cause });
    });
  // Where the name is a link, it is to stay one.
  const target = await realpath(file).catch(() => file);
  const next = path.join(path.dirname(target), `.${path.basename(target)}.${randomBytes(6).toString("hex")}`);
  try {
    const handle = await written(open(next, "wx"));
    try {
      for await (const piece of pieces) await written(handle.writeFile(piece, { signal }));
      await written(handle.sync());
    } finally {
      await written(handle.close());
    }
    signal.throwIfAborted();
    await written(rename(next, target));
  } catch (error) {
    // What is left where it can't be removed matters less than why.
    await rm(next, { force: true }).catch(() => {});
    throw error;
  }
}

// Writes more to standard output than memory should hold.

/**
 * Waits until each piece has left this process, so that a slow reader slows the source down. A reader that goes away ends it,
 * and so does a disk that is full, of which main.ts tells.
 */
export async function writeStandardOutput(
  pieces: AsyncIterable<string | Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const piece of pieces) await writePiece(piece, signal);
  } catch (error) {
    if (!(error instanceof OutputClosed)) throw error;
  }
}

/** A reader that stands still must not keep a stop from its work. */
function writePiece(piece: string | Uint8Array, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stop = () => reject(signal.reason);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop);
  process.stdout.write(piece, (error) => (error ? reject(new OutputClosed()) : resolve()));
  return promise.finally(() => signal.removeEventListener("abort", stop));
}

/** Told from what goes wrong at the source, whose connection may break in the same way. */
class OutputClosed extends Error {}

// How an instant is shown to a person: to the minute, in UTC as the days of usage are.

export function formatInstant(moment: Date): string {
  return `${moment.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
