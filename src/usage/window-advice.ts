// Decides whether the window that is read again fits how late the service changes its numbers. Pure.

/** Of one series and metric, how much of the final amount was known so many days after the day. */
export type CurvePoint = {
  readonly daysAfter: number;
  /** 0 to 1. */
  readonly knownShare: number;
  /** How many final days it rests on. */
  readonly days: number;
};

export type WindowAdvice = {
  readonly advice: "longer" | "shorter";
  /** The window to set in place of the configured one. */
  readonly days: number;
  /** After how many days enough was known. */
  readonly knownAfterDays: number;
  /** How many final days it rests on. */
  readonly restsOnDays: number;
};

/** So much of the final amount is enough. */
export const ENOUGH_SHARE = 0.999;

/** Fewer days may be an exception. */
const DAYS_MIN = 7;
/** A longer window costs little, so only one that is a multiple, and a week, too long is worth a word. */
const MUCH_LONGER = 3;
const MUCH_LONGER_DAYS = 7;

/**
 * A window of N days reads a day for the last time N days after it. What still moved at that last reading may go on moving
 * unseen, so the window is long enough only where its last reading changed nothing any more. Of several curves the slowest
 * counts. Undefined where the window fits, or too few days are known.
 */
export function adviseWindow(windowDays: number, curves: readonly (readonly CurvePoint[])[]): WindowAdvice | undefined {
  const known = curves.flatMap((curve) => knownAfter(curve) ?? []);
  const [slowest] = known.sort((a, b) => b.knownAfterDays - a.knownAfterDays || b.restsOnDays - a.restsOnDays);
  if (!slowest) return undefined;
  const { knownAfterDays } = slowest;
  if (knownAfterDays > windowDays) return { advice: "longer", days: knownAfterDays + 1, ...slowest };
  // It moved to the end of what was looked at, and nobody knows how far it would have gone.
  if (knownAfterDays === windowDays) return { advice: "longer", days: windowDays * 2, ...slowest };
  const enough = knownAfterDays + 1;
  const isMuchLonger = windowDays >= enough * MUCH_LONGER && windowDays - enough >= MUCH_LONGER_DAYS;
  return isMuchLonger ? { advice: "shorter", days: enough, ...slowest } : undefined;
}

type KnownAfter = Pick<WindowAdvice, "knownAfterDays" | "restsOnDays">;

/** From when on it stays enough: a number may be right, wrong and right again. */
function knownAfter(curve: readonly CurvePoint[]): KnownAfter | undefined {
  // Before the day after, only a part of the day was there.
  const points = curve.filter(({ daysAfter }) => daysAfter > 0).sort((a, b) => a.daysAfter - b.daysAfter);
  const last = points.at(-1);
  if (!last || last.days < DAYS_MIN) return undefined;
  const notYet = points.findLast(({ knownShare }) => knownShare < ENOUGH_SHARE);
  return { knownAfterDays: (notYet?.daysAfter ?? 0) + 1, restsOnDays: last.days };
}
