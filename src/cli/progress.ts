// Progress of long work: a bar on a terminal, lines of the log elsewhere.

import { SingleBar } from "cli-progress";
import type { Logger } from "pino";
import { durationText } from "../show/format.ts";
import type { RunCounts } from "../usage/export.ts";

/** Slices that were read, and how many of them failed. */
export type ProgressCount = { readonly done: number; readonly failed: number };

export type Progress = { readonly show: (done: ProgressCount) => void; readonly stop: () => void };

export const ZERO_PROGRESS: ProgressCount = { done: 0, failed: 0 };

export function progressCount(
  { complete, suspect, undated, failed, stale }: RunCounts,
  before = ZERO_PROGRESS,
): ProgressCount {
  return { done: before.done + complete + suspect + undated + failed + stale, failed: before.failed + failed };
}

/** `secondsLeft` is undefined while nothing is done. */
function progressState({ done, failed }: ProgressCount, planned: number, elapsedMs: number) {
  const perSecond = elapsedMs > 0 ? (done * 1000) / elapsedMs : 0;
  return {
    done,
    planned,
    failed,
    perSecond: Math.round(perSecond * 10) / 10,
    secondsLeft: perSecond > 0 ? Math.ceil(Math.max(planned - done, 0) / perSecond) : undefined,
  };
}

type OutputStream = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

/** Writes nothing to a stream that is no terminal, and removes the bar at the end. `now` is a monotonic clock. */
export function progressBar(
  label: string,
  planned: number,
  stream: OutputStream,
  now = () => performance.now(),
): Progress {
  const startedMs = now();
  const bar = new SingleBar({
    format: `${label} [{bar}] {value} of {total} slices{pace}`,
    stream: withoutCursorJumps(stream),
    barsize: 24,
    clearOnComplete: true,
    // Without this, the bar turns the terminal's line wrapping off, which stays off if the program is killed.
    linewrap: true,
  });
  bar.start(planned, 0, { pace: "" });
  return {
    show: (done) => bar.update(done.done, { pace: paceText(progressState(done, planned, now() - startedMs)) }),
    stop: () => bar.stop(),
  };
}

function paceText({ failed, perSecond, secondsLeft }: ReturnType<typeof progressState>): string {
  const left = secondsLeft === undefined ? "" : `, ${perSecond} a second, ${durationText(secondsLeft)} left`;
  return `${failed > 0 ? `, ${failed} failed` : ""}${left}`;
}

const CURSOR_JUMPS = ["\x1b7", "\x1b8"];

/** The bar restores the saved cursor position before it clears its line, which would overwrite lines logged in the meantime. */
function withoutCursorJumps(stream: OutputStream): OutputStream {
  const write = (text: string) => CURSOR_JUMPS.includes(text) || stream.write(text);
  return Object.create(stream, { write: { value: write } });
}

const EVENT_EVERY_MS = 5_000;

/** Logs an event at the start, every few seconds, and at the end. */
export function progressEvents(log: Logger, planned: number, now = () => performance.now()): Progress {
  const startedMs = now();
  let logged = ZERO_PROGRESS;
  let loggedMs = startedMs;
  let latest = ZERO_PROGRESS;
  const logLatest = () => {
    logged = latest;
    loggedMs = now();
    log.info(progressState(latest, planned, loggedMs - startedMs), "backfill progress");
  };
  logLatest();
  return {
    show(done) {
      latest = done;
      if (now() - loggedMs >= EVENT_EVERY_MS) logLatest();
    },
    stop() {
      if (logged !== latest) logLatest();
    },
  };
}
