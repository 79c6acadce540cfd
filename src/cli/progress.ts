// How far long work is: a bar on a terminal, lines of the log elsewhere.

import { SingleBar } from "cli-progress";
import type { Logger } from "pino";
import type { RunCounts } from "../usage/export.ts";

/** Slices that were read, and of those the ones that failed. */
export type Done = { readonly done: number; readonly failed: number };

export type Progress = { readonly show: (done: Done) => void; readonly stop: () => void };

export const NOT_BEGUN: Done = { done: 0, failed: 0 };

export function doneOf({ complete, suspect, undated, failed, stale }: RunCounts, before = NOT_BEGUN): Done {
  return { done: before.done + complete + suspect + undated + failed + stale, failed: before.failed + failed };
}

type Figures = Done & {
  readonly planned: number;
  readonly perSecond: number;
  /** Undefined while nothing is done. */
  readonly secondsLeft: number | undefined;
};

export function progressFigures({ done, failed }: Done, planned: number, elapsedMs: number): Figures {
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
type Screen = NodeJS.WritableStream & { readonly isTTY?: boolean; readonly columns?: number };

/** Writes nothing where nobody looks, and takes the bar away at the end. */
export function progressBar(
  label: string,
  planned: number,
  stream: Screen,
  now: Clock = () => performance.now(),
): Progress {
  const startedMs = now();
  const bar = new SingleBar({
    format: `${label} [{bar}] {value} of {total} slices{pace}`,
    stream: withoutJumps(stream),
    barsize: 24,
    clearOnComplete: true,
    // Cut by the text's length: to switch a terminal's own wrapping off leaves it off when the program is killed.
    linewrap: true,
  });
  bar.start(planned, 0, { pace: "" });
  return {
    show: (done) => bar.update(done.done, { pace: paceText(progressFigures(done, planned, now() - startedMs)) }),
    stop: () => bar.stop(),
  };
}

function paceText({ failed, perSecond, secondsLeft }: Figures): string {
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
function withoutJumps(stream: Screen): Screen {
  const write = (text: string) => CURSOR_JUMPS.includes(text) || stream.write(text);
  return Object.create(stream, { write: { value: write } });
}

const EVENT_EVERY_MS = 5_000;

/** An event at the start, one now and then, and one at the end. */
export function progressEvents(log: Logger, planned: number, now: Clock = () => performance.now()): Progress {
  const startedMs = now();
  let told = NOT_BEGUN;
  let toldMs = startedMs;
  let newest = NOT_BEGUN;
  const tell = () => {
    told = newest;
    toldMs = now();
    log.info(progressFigures(newest, planned, toldMs - startedMs), "backfill progress");
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
