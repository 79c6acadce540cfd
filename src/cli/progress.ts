// How far long work is: a bar on a terminal, lines of the log elsewhere.

import { SingleBar } from "cli-progress";
import type { Logger } from "pino";
import type { RunCounts } from "../usage/export.ts";

/** Slices that were read, and of those the ones that failed. */
export type ProgressCount = { readonly done: number; readonly failed: number };

export type Progress = { readonly show: (done: ProgressCount) => void; readonly stop: () => void };

export const ZERO_PROGRESS: ProgressCount = { done: 0, failed: 0 };

export function progressCount(
  { complete, suspect, undated, failed, stale }: RunCounts,
  before = ZERO_PROGRESS,
): ProgressCount {
  return { done: before.done + complete + suspect + undated + failed + stale, failed: before.failed + failed };
}

type ProgressState = ProgressCount & {
  readonly planned: number;
  readonly perSecond: number;
  /** Undefined while nothing is done. */
  readonly secondsLeft: number | undefined;
};

function progressState({ done, failed }: ProgressCount, planned: number, elapsedMs: number): ProgressState {
  const perSecond = elapsedMs > 0 ? (done * 1000) / elapsedMs : 0;
  return {
    done,
    planned,
    failed,
    perSecond: Math.round(perSecond * 10) / 10,
    secondsLeft: perSecond > 0 ? Math.ceil(Math.max(planned - done, 0) / perSecond) : undefined,
  };
}

/** Milliseconds that never go back. */
type Clock = () => number;

/** What may be a terminal. */
type OutputStream = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

/** Writes nothing where nobody looks, and takes the bar away at the end. */
export function progressBar(
  label: string,
  planned: number,
  stream: OutputStream,
  now: Clock = () => performance.now(),
): Progress {
  const startedMs = now();
  const bar = new SingleBar({
    format: `${label} [{bar}] {value} of {total} slices{pace}`,
    stream: withoutCursorJumps(stream),
    barsize: 24,
    clearOnComplete: true,
    // Cut by the text's length: to switch a terminal's own wrapping off leaves it off when the program is killed.
    linewrap: true,
  });
  bar.start(planned, 0, { pace: "" });
  return {
    show: (done) => bar.update(done.done, { pace: paceText(progressState(done, planned, now() - startedMs)) }),
    stop: () => bar.stop(),
  };
}

function paceText({ failed, perSecond, secondsLeft }: ProgressState): string {
  const left = secondsLeft === undefined ? "" : `, ${perSecond} a second, ${durationText(secondsLeft)} left`;
  return `${failed > 0 ? `, ${failed} failed` : ""}${left}`;
}

function durationText(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const CURSOR_JUMPS = ["\x1b7", "\x1b8"];

/** Before it clears its line the bar would go back to where it began: over lines that were logged in the meantime. */
function withoutCursorJumps(stream: OutputStream): OutputStream {
  const write = (text: string) => CURSOR_JUMPS.includes(text) || stream.write(text);
  return Object.create(stream, { write: { value: write } });
}

const EVENT_EVERY_MS = 5_000;

/** An event at the start, one now and then, and one at the end. */
export function progressEvents(log: Logger, planned: number, now: Clock = () => performance.now()): Progress {
  const startedMs = now();
  let told = ZERO_PROGRESS;
  let toldMs = startedMs;
  let newest = ZERO_PROGRESS;
  const tell = () => {
    told = newest;
    toldMs = now();
    log.info(progressState(newest, planned, toldMs - startedMs), "backfill progress");
  };
  tell();
  return {
    show(done) {
      newest = done;
      if (now() - toldMs >= EVENT_EVERY_MS) tell();
    },
    stop() {
      if (told !== newest) tell();
    },
  };
}
