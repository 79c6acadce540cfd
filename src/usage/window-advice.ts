// Decides whether the window that is read again fits how late the service changes its numbers. Pure.

/** For a series and a metric: how much of the final amount was known `daysAfter` days after the day. */
export type CurvePoint = {
  readonly daysAfter: number;
  /** 0 to 1. */
  readonly knownShare: number;
  /** How many final days this point is computed from. */
  readonly days: number;
};

export type WindowAdvice = {
  readonly advice: "longer" | "shorter";
  /** The window to set in place of the configured one. */
  readonly days: number;
  /** After how many days enough was known. */
  readonly knownAfterDays: number;
  /** How many final days the advice is computed from. */
  readonly restsOnDays: number;
};

export const KNOWN_SHARE_ENOUGH = 0.999;

/** Advice from fewer days could rest on exceptions. */
const ADVICE_DAYS_MIN = 7;
/** A window that is too long costs little. So it is reported only if it is three times as long as needed, and a week longer. */
const MUCH_LONGER_FACTOR = 3;
const MUCH_LONGER_DAYS = 7;

/**
 * A window of N days reads a day for the last time N days after it. Numbers that still change at that reading may change later,
 * unseen. So the window is long enough only if the last reading changes nothing. The slowest of several curves counts. Undefined if
 * the window fits, or too few days are known.
 */
export function adviseWindow(windowDays: number, curves: readonly (readonly CurvePoint[])[]): WindowAdvice | undefined {
  const known = curves.flatMap((curve) => knownAfter(curve) ?? []);
  const [slowest] = known.sort((a, b) => b.knownAfterDays - a.knownAfterDays || b.restsOnDays - a.restsOnDays);
  if (!slowest) return undefined;
  const { knownAfterDays } = slowest;
  if (knownAfterDays > windowDays) return { advice: "longer", days: knownAfterDays + 1, ...slowest };
  // The numbers changed up to the last reading, so nobody knows when they would have stopped.
  if (knownAfterDays === windowDays) return { advice: "longer", days: windowDays * 2, ...slowest };
  const enough = knownAfterDays + 1;
  const isMuchLonger = windowDays >= enough * MUCH_LONGER_FACTOR && windowDays - enough >= MUCH_LONGER_DAYS;
  return isMuchLonger ? { advice: "shorter", days: enough, ...slowest } : undefined;
}

type KnownAfter = Pick<WindowAdvice, "knownAfterDays" | "restsOnDays">;

/** After how many days enough is known and stays known. A number may be right, then wrong, then right again. */
function knownAfter(curve: readonly CurvePoint[]): KnownAfter | undefined {
  // On the day itself, only a part of its usage can be known.
  const points = curve.filter(({ daysAfter }) => daysAfter > 0).sort((a, b) => a.daysAfter - b.daysAfter);
  const last = points.at(-1);
  if (!last || last.days < ADVICE_DAYS_MIN) return undefined;
  const notYet = points.findLast(({ knownShare }) => knownShare < KNOWN_SHARE_ENOUGH);
  return { knownAfterDays: (notYet?.daysAfter ?? 0) + 1, restsOnDays: last.days };
}
