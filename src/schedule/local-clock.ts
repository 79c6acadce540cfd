// What the clocks of a time zone show, and when they are set. A local time is a number here: the milliseconds at which a
// clock in UTC shows the same.

export type LocalClock = {
  readonly shownAt: (atMs: number) => number;
  /** The moments after one, and not after another, at which the clock is set forward or back; the earliest first. */
  readonly settings: (afterMs: number, untilMs: number) => readonly number[];
};

/** How far the clock is ahead of UTC from one moment until another. It may be set as late as the moment at which the stretch ends. */
type Stretch = { readonly aheadMs: number; readonly setAtMs: number | undefined; readonly aheadMsAtEnd: number };

export const SECOND_MS = 1_000;
export const DAY_MS = 24 * 60 * 60 * SECOND_MS;

/** Since 1970 every zone has left its clocks alone for a week at least before it set them again. */
const STRETCH_MS = 4 * DAY_MS;

/**
 * The runtime tells what a clock shows, and not when it is set: that is looked for where the clock is not as far ahead of
 * UTC at the end of a stretch of days as at its start.
 */
export function openLocalClock(timezone: string): LocalClock {
  // Sweden writes a time as ISO 8601 does.
  const format = new Intl.DateTimeFormat("sv", { timeZone: timezone, dateStyle: "short", timeStyle: "medium" });
  const stretches = new Map<number, Stretch>();

  function aheadMsAt(atMs: number): number {
    return Date.parse(`${format.format(atMs).replace(" ", "T")}Z`) - atMs;
  }

  function stretchOf(number: number): Stretch {
    const known = stretches.get(number);
    if (known) return known;
    const startMs = number * STRETCH_MS;
    const endMs = startMs + STRETCH_MS;
    const aheadMs = stretches.get(number - 1)?.aheadMsAtEnd ?? aheadMsAt(startMs);
    const aheadMsAtEnd = aheadMsAt(endMs);
    const setAtMs = aheadMs === aheadMsAtEnd ? undefined : settingBetween(startMs, endMs);
    const read = { aheadMs, setAtMs, aheadMsAtEnd };
    stretches.set(number, read);
    return read;
  }

  /** To the second: Liberia set its clocks by 44 minutes and 30 seconds in 1972. */
  function settingBetween(startMs: number, endMs: number): number {
    const aheadMs = aheadMsAt(startMs);
    let beforeMs = startMs;
    let afterMs = endMs;
    while (afterMs - beforeMs > SECOND_MS) {
      const middleMs = beforeMs + Math.floor((afterMs - beforeMs) / 2 / SECOND_MS) * SECOND_MS;
      if (aheadMsAt(middleMs) === aheadMs) beforeMs = middleMs;
      else afterMs = middleMs;
    }
    return afterMs;
  }

  return {
    shownAt(atMs) {
      const { aheadMs, setAtMs, aheadMsAtEnd } = stretchOf(stretchAt(atMs));
      return atMs + (setAtMs === undefined || atMs < setAtMs ? aheadMs : aheadMsAtEnd);
    },
    settings(afterMs, untilMs) {
      const found: number[] = [];
      for (let number = stretchAt(afterMs); number <= stretchAt(untilMs); number++) {
        const { setAtMs } = stretchOf(number);
        if (setAtMs !== undefined && setAtMs > afterMs && setAtMs <= untilMs) found.push(setAtMs);
      }
      return found;
    },
  };
}

function stretchAt(ms: number): number {
  return Math.floor(ms / STRETCH_MS);
}
