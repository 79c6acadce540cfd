// Writes more to standard output than memory should hold.

/**
 * Waits until each piece has left this process, so that a slow reader slows the source down. A reader that goes away ends it,
 * and so does a disk that is full, of which main.ts tells.
 */
export async function writeToOutput(pieces: AsyncIterable<string | Uint8Array>, signal: AbortSignal): Promise<void> {
  try {
    for await (const piece of pieces) await written(piece, signal);
  } catch (error) {
    if (!(error instanceof OutputClosed)) throw error;
  }
}

/** A reader that stands still must not keep a stop from its work. */
function written(piece: string | Uint8Array, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const stop = () => reject(signal.reason);
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop);
  process.stdout.write(piece, (error) => (error ? reject(new OutputClosed()) : resolve()));
  return promise.finally(() => signal.removeEventListener("abort", stop));
}

/** Told from what goes wrong at the source, whose connection may break in the same way. */
class OutputClosed extends Error {}
