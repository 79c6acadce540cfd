// Sends a request once and reads the whole answer, by undici's events: a stream for each body would cost more than the rest of a call.

import type { Dispatcher } from "undici";
import { AppError } from "../errors.ts";
import { isReadable } from "./answer.ts";
import type { Reply } from "./errors.ts";

/** About a hundred thousand rows. It bounds the memory that a body without an end takes. */
const BODY_BYTES_MAX = 32 * 1024 * 1024;
/**
 * This many chunks are joined into one, because a chunk takes more than a hundred bytes of memory besides its content, which can be
 * one byte. An ordinary body has fewer chunks.
 */
const CHUNKS_MAX = 4096;
/** The limit for a body that is read only for an error message. Of a longer one nothing is shown. */
const ERROR_BYTES_MAX = 64 * 1024;

/** The whole exchange must end within `seconds`, and ends when the signal is aborted. */
export type TimeLimit = { readonly seconds: number; readonly signal: AbortSignal | undefined };

/** Rejects if there is no whole answer. If only an error message would be read from the body, it resolves without the body instead. */
export function exchange(
  agent: Dispatcher,
  options: Dispatcher.RequestOptions,
  { seconds, signal }: TimeLimit,
): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  if (signal?.aborted) {
    // A signal that is already aborted fires no event.
    reject(signal.reason);
    return promise;
  }
  let reply: (Omit<Reply, "body"> & { readonly isWanted: boolean }) | undefined;
  let controller: Dispatcher.DispatchController | undefined;
  let failure: Error | undefined;
  const body = openBody();

  const finish = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  };
  const fail = (error: Error) => {
    if (failure) return;
    failure = error;
    finish();
    if (reply?.isWanted === false) resolve({ ...reply, body: undefined });
    else reject(error);
    controller?.abort(error);
  };
  const stop = () => fail(signal?.reason);
  const timer = setTimeout(
    () => fail(new AppError("unavailable", `no whole answer within ${seconds} s`)),
    seconds * 1000,
  );
  signal?.addEventListener("abort", stop, { once: true });

  agent.dispatch(options, {
    onRequestStart(started) {
      controller = started;
      // The exchange may have ended while undici was connecting: then nothing is sent.
      if (failure) started.abort(failure);
    },
    onResponseStart(_controller, status, headers) {
      // An informational answer precedes the answer itself.
      if (status >= 200) reply = { status, headers, isWanted: isReadable(status, headers) };
    },
    onResponseData(_controller, chunk) {
      const bytesMax = reply?.isWanted ? BODY_BYTES_MAX : ERROR_BYTES_MAX;
      if (body.add(chunk) > bytesMax) fail(new AppError("bad_answer", `the answer is longer than ${bytesMax} bytes`));
    },
    onResponseEnd() {
      finish();
      if (reply) resolve({ status: reply.status, headers: reply.headers, body: body.join() });
    },
    onResponseError(_controller, error) {
      fail(error);
    },
  });
  return promise;
}

function openBody() {
  const joined: Uint8Array[] = [];
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  return {
    /** Returns how many bytes there are now. */
    add(chunk: Uint8Array): number {
      bytes += chunk.length;
      chunks.push(chunk);
      if (chunks.length === CHUNKS_MAX) joined.push(Buffer.concat(chunks.splice(0)));
      return bytes;
    },
    join: (): Uint8Array => Buffer.concat([...joined, ...chunks], bytes),
  };
}
