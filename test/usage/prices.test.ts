// The price book: which prices overlap, and what stays of stored prices when the configuration changes.

import fc from "fast-check";
import { expect, test } from "vitest";
import { addDays } from "../../src/usage/days.ts";
import {
  changeBook,
  overlappingPrices,
  type Price,
  type StoredPrice,
  unitFactor,
  unreadPrices,
  withEnds,
} from "../../src/usage/prices.ts";
import { ALL_USAGE } from "./sample-request.ts";

const NOVA: Price = {
  metric: "hours",
  model: "nova-3",
  conditions: {},
  currency: "USD",
  digits: 2,
  per: "1",
  price: "1",
  tiers: [],
  volume: "account",
  from: "2026-01-01",
};
const priced = (part: Partial<Price>): Price => ({ ...NOVA, ...part });

/** Whether the second of two prices is said to overlap the first. */
const overlap = (a: Partial<Price>, b: Partial<Price>) => overlappingPrices([priced(a), priced(b)]).length === 1;

test("prices overlap if a model, the conditions and a day fit both", () => {
  expect(overlap({}, { model: "nova-*" })).toBe(true);
  expect(overlap({ model: "nova-*" }, { model: "nova-3-*" })).toBe(true);
  expect(overlap({ model: "*" }, { model: '["a","b"]' })).toBe(true);
  expect(overlap({ model: "a*" }, { model: '["a","ab"]' })).toBe(true);
  expect(overlap({}, { conditions: { endpoint: "listen" } })).toBe(true);
  expect(overlap({ conditions: { endpoint: "listen" } }, { conditions: { method: "sync" } })).toBe(true);
  expect(overlap({ until: "2026-03-31" }, { model: "*", from: "2026-03-31" })).toBe(true);
});

test("prices do not overlap if no model, no condition, no metric or no day fits both", () => {
  expect(overlap({}, { model: "nova-2" })).toBe(false);
  expect(overlap({ model: "nova-*" }, { model: "aura-*" })).toBe(false);
  expect(overlap({ model: "a*" }, { model: '["a","b"]' })).toBe(false);
  expect(overlap({ model: "a" }, { model: '["a","b"]' })).toBe(false);
  expect(overlap({}, { metric: "requests" })).toBe(false);
  expect(overlap({ conditions: { endpoint: "listen" } }, { conditions: { endpoint: "speak", method: "sync" } })).toBe(
    false,
  );
  expect(overlap({ until: "2026-03-31" }, { model: "*", from: "2026-04-01" })).toBe(false);
});

test("a price without an end ends before the next of the same usage; two that begin on one day overlap, and so does an end that is too late", () => {
  expect(overlap({}, { from: "2026-06-01" })).toBe(false);
  expect(overlap({ from: "2026-06-01" }, {})).toBe(false);
  expect(overlap({}, {})).toBe(true);
  expect(overlap({ until: "2026-06-01" }, { from: "2026-06-01" })).toBe(true);
});

/** A database in memory. */
class Book {
  #nextId = 1;
  inForce: readonly StoredPrice[] = [];

  /** Returns how many versions were replaced and added. */
  store(configured: readonly Price[]): string {
    const { replaced, added } = changeBook(this.inForce, configured);
    const kept = this.inForce.filter(({ id }) => !replaced.includes(id));
    this.inForce = [...kept, ...added.map((price) => ({ ...price, id: this.#nextId++ }))];
    return `-${replaced.length} +${added.length}`;
  }

  /** The ranges with their prices, by first day. */
  get text(): string {
    const ranges = this.inForce.map(({ from, until = "", price, model }) => `${from}..${until} ${model} ${price}`);
    return ranges.sort().join(", ");
  }
}

test("the same prices again change nothing", () => {
  const book = new Book();
  const prices = [priced({}), priced({ from: "2026-06-01", price: "2" }), priced({ model: "aura", minimum: "5" })];
  expect(book.store(prices)).toBe("-0 +3");
  expect(book.store(prices.toReversed())).toBe("-0 +0");
});

test("a price that was removed from the file stays, and another price for past days takes its place on just these", () => {
  const book = new Book();
  book.store([priced({})]);
  expect(book.store([priced({ model: "aura" })])).toBe("-0 +1");
  book.store([priced({ model: "nova*", from: "2026-02-01", until: "2026-02-28", price: "9" })]);
  expect(book.text).toBe(
    "2026-01-01.. aura 1, 2026-01-01..2026-01-31 nova-3 1, 2026-02-01..2026-02-28 nova* 9, 2026-03-01.. nova-3 1",
  );
});

test("null takes a price away from its days, and the price before comes back if the file has it again", () => {
  const book = new Book();
  book.store([priced({})]);
  book.store([priced({ price: null, from: "2026-03-01" })]);
  expect(book.text).toBe("2026-01-01..2026-02-28 nova-3 1");
  book.store([priced({})]);
  expect(book.text).toBe("2026-01-01.. nova-3 1");
});

test("without the newer price in the file the older one does not grow over its days, unless it is given an end there", () => {
  const book = new Book();
  const [january, march, june] = [
    priced({}),
    priced({ from: "2026-03-01", price: "2" }),
    priced({ from: "2026-06-01", price: "3" }),
  ];
  const all = "2026-01-01..2026-02-28 nova-3 1, 2026-03-01..2026-05-31 nova-3 2, 2026-06-01.. nova-3 3";
  book.store([january, march, june]);
  for (const part of [[january], [january, march], [january, june], [march], [june]]) {
    expect(book.store(part)).toBe("-0 +0");
    expect(book.text).toBe(all);
  }
  book.store([priced({ until: "2026-04-30" })]);
  expect(book.text).toBe("2026-01-01..2026-04-30 nova-3 1, 2026-05-01..2026-05-31 nova-3 2, 2026-06-01.. nova-3 3");
});

const day = fc.integer({ min: 0, max: 12 }).map((days) => addDays("2026-01-01", days));
const somePrice = fc
  .record({
    model: fc.constantFrom("nova-3", "nova-2", "nova*", "*", '["nova-2","nova-3"]', "aura"),
    conditions: fc.constantFrom({}, { endpoint: "listen" }, { endpoint: "speak" }, { method: "sync" }),
    from: day,
    until: fc.option(day, { nil: undefined }),
    price: fc.constantFrom("1", "2", null),
  })
  .filter(({ from, until }) => until === undefined || from <= until)
  .map(priced);
const somePrices = fc
  .array(somePrice, { maxLength: 6 })
  .map((all) => all.filter((_, i) => !overlappingPrices(all.slice(0, i + 1)).some(({ index }) => index === i)))
  .filter((all) => overlappingPrices(all).length === 0);

/** What a price says of a day, for models and conditions that each price either covers wholly or not at all. */
const saysOn = (prices: readonly Price[], model: string, endpoint: string, on: string) =>
  prices.filter(
    (price) =>
      price.from <= on &&
      (price.until ?? "9999-12-31") >= on &&
      (price.conditions.endpoint ?? endpoint) === endpoint &&
      (price.model.endsWith("*") ? model.startsWith(price.model.slice(0, -1)) : price.model === model),
  );

/** A stored price that came after this one, and that the file no longer has. */
const isLaterOf = (price: Price, other: Price) =>
  other.from > price.from &&
  JSON.stringify([other.model, other.conditions]) === JSON.stringify([price.model, price.conditions]);

test("after any sequence of configurations no two prices in force overlap, the last one is in force, and storing it again changes nothing", () => {
  fc.assert(
    fc.property(fc.array(somePrices, { minLength: 1, maxLength: 4 }), (configurations) => {
      const book = new Book();
      for (const configured of configurations) book.store(configured);
      expect(overlappingPrices(book.inForce)).toEqual([]);
      const last = configurations.at(-1) ?? [];
      expect(book.store(last)).toBe("-0 +0");
      for (const model of ["nova-3", "aura"]) {
        for (let i = 0; i < 15; i++) {
          const on = addDays("2026-01-01", i);
          const [wanted] = saysOn(withEnds(last), model, "listen", on);
          const found = saysOn(book.inForce, model, "listen", on);
          if (wanted && !found.some((price) => isLaterOf(wanted, price)))
            expect(found.map(({ price }) => price)).toEqual(wanted.price === null ? [] : [wanted.price]);
        }
      }
    }),
    { numRuns: 300 },
  );
});

test("the factor to the price of one unit is exact", () => {
  expect(["1", "10", "1000", "hour", "minute", "second"].map(unitFactor)).toEqual([
    "1",
    "0.1",
    "0.001",
    "1",
    "60",
    "3600",
  ]);
});

test("a price is read if its series is configured by model: with just its conditions, and in every project", () => {
  const [project, other] = ["a", "b"].map((name) => ({ id: name, name }));
  if (!project || !other) throw new Error("two projects");
  const listen = { name: "listen", features: {}, dimensions: { endpoint: "listen" } };
  const series = [
    { series: { project, source: "usage", grouping: "model", filter: ALL_USAGE }, windowDays: 7 },
    { series: { project, source: "usage", grouping: "endpoint", filter: listen }, windowDays: 7 },
    { series: { project: other, source: "usage", grouping: "model", filter: listen }, windowDays: 7 },
  ] as const;
  expect(unreadPrices([priced({}), priced({ conditions: listen.dimensions })], series)).toEqual([
    { index: 0, conditions: {}, projects: ["b"] },
    { index: 1, conditions: listen.dimensions, projects: ["a"] },
  ]);
});
