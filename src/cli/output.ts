// Writes a command's answer to standard output, whole or piece by piece, or atomically to a file.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { realpath, stat } from "node:fs/promises";
import path from "node:path";
import type { App } from "../app.ts";
import { AppError } from "../errors.ts";
import { type Pieces, replaceFile } from "../files.ts";

type AnswerOptions = { readonly json?: boolean };

export function writeAnswer<T>(app: App, { json }: AnswerOptions, answer: T, toText: (answer: T) => string): void {
  app.write(json ? `${JSON.stringify(answer)}\n` : toText(answer));
}

/** Throws `config`, before any work is done, if no file can be written at the path of --out. */
export async function checkOutputPath(file: string): Promise<void> {
  const folder = path.dirname(path.resolve(file));
  const [parent, existing] = await Promise.all([folder, file].map((one) => stat(one).catch(() => undefined)));
  if (!parent?.isDirectory()) {
    throw new AppError("config", `--out: expected a file in an existing folder, got ${file}; make ${folder} first`);
  }
  if (existing && !existing.isFile()) {
    throw new AppError("config", `--out: expected the name of a file, got ${file}, which is something else`);
  }
}

/** If writing fails or is aborted, the old file stays. Throws `delivery` if the file can't be written, and errors of `pieces` as they are. */
export async function writeFileAtomically(file: string, pieces: Pieces, signal: AbortSignal): Promise<void> {
  // If the name is a link, the link stays and its target is replaced.
  const target = await realpath(file).catch(() => file);
  const temporary = path.join(path.dirname(target), `.${path.basename(target)}.${randomBytes(6).toString("hex")}`);
  let sourceError: unknown;
  async function* source() {
    try {
      yield* pieces;
    } catch (error) {
      sourceError = error;
      throw error;
    }
  }
  try {
    await replaceFile(target, source(), { temporary, signal });
  } catch (cause) {
    if (cause === sourceError) throw cause;
    signal.throwIfAborted();
    throw new AppError("delivery", `the file ${file} could not be written`, { cause });
  }
}

/** Awaits each write, so that a slow reader slows the source down. Returns after a failed write: main.ts reports the error. */
export async function writeStandardOutput(pieces: AsyncIterable<string | Uint8Array>, signal: AbortSignal) {
  // Each write is raced against the abort, because a write never ends if the reader reads nothing.
  const stopped = once(signal, "abort");
  for await (const piece of pieces) {
    const written = new Promise<boolean>((resolve) => process.stdout.write(piece, (error) => resolve(!error)));
    // `stopped` never resolves if the signal was aborted before this call.
    const isWritten = signal.aborted || (await Promise.race([written, stopped]));
    signal.throwIfAborted();
    if (!isWritten) return;
  }
}
