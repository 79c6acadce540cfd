// The price book, in which prices end and may overlap, and the exact decimal text of amounts.

import fc from "fast-check";
import { expect, test } from "vitest";
import { overlappingPrices, type Price, unitFactor, withEnds } from "../../src/config/money.ts";
import { decimalText, ExactNumber } from "../../src/decimal.ts";

const NOVA: Price = {
  ...{ metric: "hours", model: "nova-3", currency: "USD" },
  ...{ per: "1", price: "1", tiers: [], from: "2026-01-01" },
};
const priced = (part: Partial<Price>): Price => ({ ...NOVA, ...part });

/** Whether two prices are reported as overlapping. */
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

test("two prices of the same usage overlap only if they begin on one day, or the first has an end that is too late", () => {
  expect(overlap({}, { from: "2026-06-01" })).toBe(false);
  expect(overlap({ from: "2026-06-01" }, {})).toBe(false);
  expect(overlap({}, {})).toBe(true);
  expect(overlap({ until: "2026-06-01" }, { from: "2026-06-01" })).toBe(true);
});

test("a price whose last day is before its first is not reported as overlapping", () => {
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

const zeros = (count: number) => "0".repeat(count);

test.each<[string, string]>([
  ["0", "0"],
  ["-0", "0"],
  ["1.50", "1.5"],
  ["-0.25", "-0.25"],
  ["1e3", "1000"],
  ["1e+3", "1000"],
  ["1e-3", "0.001"],
  ["12.345e-2", "0.12345"],
  ["120e-1", "12"],
  ["9007199254740993", "9007199254740993"],
  ["0.1234567890123456789012345678901234567890", "0.123456789012345678901234567890123456789"],
  ["1234567890123456789012345678901234567890", "1234567890123456789012345678901234567890"],
  ["1e399", `1${zeros(399)}`],
  [`1${zeros(399)}`, `1${zeros(399)}`],
  ["1e-400", `0.${zeros(399)}1`],
])("%s is %s, digit by digit", (source, text) => {
  expect(decimalText(new ExactNumber(source))).toBe(text);
});

test.each(["1e401", "1e-402", `1${zeros(400)}`, `0.${zeros(400)}1`, "1e999999999999", "1e-999999999999"])(
  "%s is too long to be an amount",
  (source) => {
    expect(decimalText(new ExactNumber(source))).toBeUndefined();
  },
);

test.each(["Infinity", "-Infinity", "NaN", "", "1.", ".5", "0x10", "1 ", "+1"])(
  "%j is not a decimal number",
  (source) => {
    expect(decimalText(new ExactNumber(source))).toBeUndefined();
  },
);

test("the text of any double is read back as the same double", () => {
  fc.assert(
    fc.property(fc.double({ noDefaultInfinity: true, noNaN: true }), (value) => {
      // Negative zero becomes 0.
      expect(Number(decimalText(value))).toBe(value === 0 ? 0 : value);
    }),
  );
});

test("however a number is written, its text is the same", () => {
  const digits = fc.integer({ min: 0, max: 10 ** 9 });
  fc.assert(
    fc.property(digits, fc.integer({ min: -20, max: 20 }), fc.integer({ min: 0, max: 5 }), (whole, exponent, more) => {
      const plain = decimalText(new ExactNumber(`${whole}e${exponent}`));
      expect(decimalText(new ExactNumber(`${whole}${zeros(more)}e${exponent - more}`))).toBe(plain);
      expect(decimalText(new ExactNumber(`${whole}.0${zeros(more)}E${exponent}`))).toBe(plain);
    }),
  );
});
