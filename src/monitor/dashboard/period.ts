// Which days a visitor asked to see. Pure.

import { type BrokenLimit, brokenLimit, DAY_MIN, DAYS_DEFAULT, DAYS_MAX } from "../../report/period-limits.ts";
import { addDays, type Day, dayCount, isDay, type Window } from "../../usage/day.ts";

export type Period = Window & {
  /** It moves on with the days; else it was asked for by its dates. */
  readonly live: boolean;
};

const PARAMETERS = ["days", "from", "to"];

/** The period, or what is wrong with the query, in words for who wrote it. Fields that were left empty were not filled in. */
export function periodOf(query: URLSearchParams, today: Day): Period | { readonly fault: string } {
  const given = [...query].filter(([, value]) => value !== "");
  const names = given.map(([name]) => name);
  const unknown = names.find((name) => !PARAMETERS.includes(name));
  if (unknown !== undefined)
    return { fault: `unknown parameter ${JSON.stringify(unknown)}; there are days, from and to` };
  if (new Set(names).size < names.length) return { fault: "expected each parameter once" };
  const { days, from, to } = Object.fromEntries(given);
  if (from === undefined && to === undefined) return lastDays(days ?? String(DAYS_DEFAULT), today);
  if (days !== undefined) return { fault: "expected days, or from and to; not both" };
  return betweenDays(from, to, today);
}

/** Complete days, of which yesterday is the newest. */
function lastDays(days: string, today: Day): Period | { readonly fault: string } {
  const count = /^\d{1,4}$/.test(days) ? Number(days) : 0;
  if (count < 1 || count > DAYS_MAX) return { fault: `days: expected a whole number from 1 to ${DAYS_MAX}` };
  return { start: addDays(today, -count), end: addDays(today, -1), live: true };
}

function betweenDays(from: Day | undefined, to: Day | undefined, today: Day): Period | { readonly fault: string } {
  if (from === undefined || to === undefined) return { fault: "expected both from and to" };
  for (const [name, day] of Object.entries({ from, to })) {
    if (!isDay(day)) return { fault: `${name}: expected a day that exists, as YYYY-MM-DD` };
  }
  const window = { start: from, end: to };
  const broken = brokenLimit(window, today);
  return broken === undefined ? { ...window, live: false } : { fault: faultText(broken, window, today) };
}

function faultText(broken: BrokenLimit, window: Window, today: Day): string {
  switch (broken) {
    case "ends after today":
      return `to: expected a day that has begun; today is ${today} in UTC`;
    case "begins after its end":
      return `expected from not to be after to; got ${window.start} and ${window.end}: change them round`;
    case "begins too early":
      return `from: expected a day since ${DAY_MIN}`;
    case "has too many days":
      return `expected at most ${DAYS_MAX} days; got ${dayCount(window)}`;
  }
}

/** Of the days as they are now, which stay when time goes on. */
export function queryOf({ start, end }: Window): string {
  return `?from=${start}&to=${end}`;
}
