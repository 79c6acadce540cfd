// Made-up daily usage of known shapes, to measure the forecast and the anomalies with.

import { addDays, type Day, daysOf, type Window } from "../../src/usage/days.ts";
import { type Random, randomFrom } from "./random.ts";

export const SHAPES = ["flat", "growth", "weekday pattern", "step", "spiky"] as const;
/** "noisy" has as much noise as "spiky", and no spikes. */
type Shape = (typeof SHAPES)[number] | "noisy";

/** The usage of a day, `n` days after the first one. */
type AmountOf = (day: Day, n: number) => number;

const LEVEL = 10_000;

function isWeekend(day: Day): boolean {
  return [0, 6].includes(new Date(`${day}T00:00:00Z`).getUTCDay());
}

function between(random: Random, low: number, high: number): number {
  return low + (high - low) * random.uniform();
}

/** `stepFrom` and `stepTo` are the first and the last day on which the level of "step" may change. */
function amountsOf(shape: Shape, random: Random, { stepFrom, stepTo }: { stepFrom: number; stepTo: number }): AmountOf {
  const noisy = (amount: number, noise: number) => amount * Math.max(0.05, 1 + noise * random.normal());
  switch (shape) {
    case "flat":
      return () => noisy(LEVEL, 0.1);
    case "growth": {
      const aDay = between(random, 0.003, 0.01);
      return (_, n) => noisy(LEVEL * (1 + aDay) ** n, 0.1);
    }
    case "weekday pattern": {
      const weekend = between(random, 0.1, 0.5);
      return (day) => noisy(LEVEL * (isWeekend(day) ? weekend : 1), 0.12);
    }
    case "step": {
      const at = Math.round(between(random, stepFrom, stepTo));
      const factor = random.uniform() < 0.5 ? between(random, 0.4, 0.7) : between(random, 1.4, 2);
      return (day, n) => noisy(LEVEL * (isWeekend(day) ? 0.6 : 1) * (n < at ? 1 : factor), 0.1);
    }
    case "noisy":
      return (day) => noisy(LEVEL * (isWeekend(day) ? 0.7 : 1), 0.25);
    case "spiky":
      return (day) => {
        const spike = random.uniform() < 0.06 ? between(random, 3, 8) : 1;
        return noisy(LEVEL * (isWeekend(day) ? 0.7 : 1) * spike, 0.25);
      };
  }
}

/** The final usage of each day of the window. */
export function madeUpDays(
  shape: Shape,
  seed: number,
  window: Window,
  step: { readonly from: Day; readonly to: Day } = { from: window.start, to: window.start },
): ReadonlyMap<Day, number> {
  const random = randomFrom(seed);
  const days = daysOf(window);
  const amountOf = amountsOf(shape, random, { stepFrom: days.indexOf(step.from), stepTo: days.indexOf(step.to) });
  return new Map(days.map((day, n) => [day, Math.round(amountOf(day, n))]));
}

export function monthFrom(year: number, month: number): Window {
  const start = new Date(Date.UTC(year, month, 1)).toISOString().slice(0, 10);
  const next = new Date(Date.UTC(year, month + 1, 1)).toISOString().slice(0, 10);
  return { start, end: addDays(next, -1) };
}
