// The price book: which prices overlap.

import { expect, test } from "vitest";
import type { Price } from "../../src/config/money.ts";
import { overlappingPrices, unitFactor, withEnds } from "../../src/usage/prices.ts";

const NOVA: Price = {
  ...{ metric: "hours", model: "nova-3", currency: "USD" },
  ...{ per: "1", price: "1", tiers: [], from: "2026-01-01" },
};
const priced = (part: Partial<Price>): Price => ({ ...NOVA, ...part });

/** Whether the second of two prices is said to overlap the first. */
const overlap = (a: Partial<Price>, b: Partial<Price>) => overlappingPrices([priced(a), priced(b)]).length === 1;

test("prices overlap if a model, the conditions and a day fit both", () => {
  expect(overlap({}, { model: "nova-*" })).toBe(true);
  expect(overlap({ model: "nova-*" }, { model: "nova-3-*" })).toBe(true);
  expect(overlap({}, { endpoint: "listen" })).toBe(true);
  expect(overlap({ endpoint: "listen" }, { method: "sync" })).toBe(true);
  expect(overlap({ model: "nova-3-*" }, { model: "nova-*" })).toBe(true);
  expect(overlap({ method: "sync" }, { model: "*", method: "sync" })).toBe(true);
  expect(overlap({ until: "2026-03-31" }, { model: "*", from: "2026-03-31" })).toBe(true);
  expect(overlap({ from: "2026-03-31" }, { model: "*", until: "2026-03-31" })).toBe(true);
});

test("prices do not overlap if no model, no condition, no metric or no day fits both", () => {
  expect(overlap({}, { model: "nova-2" })).toBe(false);
  expect(overlap({ model: "nova-*" }, { model: "aura-*" })).toBe(false);
  expect(overlap({ model: "nano-*" }, { model: "nova-*" })).toBe(false);
  expect(overlap({}, { metric: "requests" })).toBe(false);
  expect(overlap({ endpoint: "listen" }, { endpoint: "speak", method: "sync" })).toBe(false);
  expect(overlap({ until: "2026-03-31" }, { model: "*", from: "2026-04-01" })).toBe(false);
  expect(overlap({ from: "2026-04-01" }, { model: "*", until: "2026-03-31" })).toBe(false);
});

test("a price without an end ends before the next of the same usage; two that begin on one day overlap, and so does an end that is too late", () => {
  expect(overlap({}, { from: "2026-06-01" })).toBe(false);
  expect(overlap({ from: "2026-06-01" }, {})).toBe(false);
  expect(overlap({}, {})).toBe(true);
  expect(overlap({ until: "2026-06-01" }, { from: "2026-06-01" })).toBe(true);
});

test("a price whose last day is before its first is not said to overlap", () => {
  expect(overlappingPrices([priced({ until: "2025-12-31" })])).toEqual([]);
});

test("a price ends on the day before the next one for the same usage, whatever other prices there are", () => {
  const from = (month: string, part: Partial<Price> = {}) => priced({ from: `2026-${month}-01`, ...part });
  const ended = withEnds([
    from("01"),
    from("09"),
    from("05"),
    from("02", { endpoint: "listen" }),
    from("03", { model: "nova-*" }),
    from("04", { metric: "requests" }),
  ]);
  const open = undefined;
  expect(ended.map(({ until }) => until)).toEqual(["2026-04-30", open, "2026-08-31", open, open, open]);
});

test("the factor to the price of one unit is exact", () => {
  const factors = ["1", "0.1", "0.001", "1", "60", "3600"];
  expect(["1", "10", "1000", "hour", "minute", "second"].map(unitFactor)).toEqual(factors);
});
