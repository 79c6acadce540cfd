// The price book in the configuration: exact numbers, and errors that name the place and the fix.

import fc from "fast-check";
import { expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { errorsFor, sampleWith } from "./sample-config.ts";

const PRICE = { metric: "hours", model: "nova-3", currency: "USD", price: "0.0077", from: "2026-01-01" };
const errorsIn = (...prices: readonly object[]) =>
  errorsFor(sampleWith("prices", prices)).map((line) => line.replace(/ \(line \d+\)/, ""));

/** The prices of a text, in which a number has all the digits that are written. */
const pricesOf = (text: string) =>
  parseConfig(sampleWith("prices", "@").replace('"@"', text), { source: "test", baseDir: "/" }).prices;

test("a price keeps every digit, as a number and as text", () => {
  const digits = fc
    .tuple(fc.bigInt({ min: 1n, max: 10n ** 27n }), fc.integer({ min: 1, max: 27 }))
    .map(([whole, places]) => {
      const text = String(whole * 10n + 1n).padStart(places + 1, "0");
      return `${text.slice(0, -places)}.${text.slice(-places)}`;
    });
  fc.assert(
    fc.property(digits, (text) => {
      const others = `"metric":"hours","model":"m","currency":"USD","from":"2026-01-01"`;
      for (const written of [text, `"${text}"`]) {
        expect(pricesOf(`[{${others},"price":${written}}]`)).toMatchObject([{ price: text }]);
      }
    }),
  );
  expect(pricesOf(`[${JSON.stringify({ ...PRICE, price: "@" }).replace('"@"', "25e-4")}]`)).toMatchObject([
    { price: "0.0025" },
  ]);
});

test.each<[object, string]>([
  [{ metric: "minutes" }, 'prices[0].metric: expected one of "hours", '],
  [{ metric: "hour" }, 'did you mean "hours"?'],
  [{ price: -1 }, 'prices[0].price: expected a decimal number of 0 or more, such as 0.0043 or "0.0043"; got -1'],
  [{ price: "0,01" }, 'got "0,01"'],
  [{ price: undefined }, "prices[0].price: missing; expected a decimal number of 0 or more"],
  [{ from: "2026-02-30" }, 'prices[0].from: expected a day that exists, such as "2026-01-31"; got "2026-02-30"'],
  [{ until: "2025-12-31" }, 'prices[0].until: expected a day not before "from", which is 2026-01-01; got "2025-12-31"'],
  [
    { currency: "usd" },
    'prices[0].currency: expected the code of a currency, such as "USD" or "EUR"; got "usd"; did you mean "USD"?',
  ],
  [{ model: "nova*3" }, 'prices[0].model: expected a model, the beginning of models such as "nova-*"'],
  [{ model: ["a", "b*"] }, 'got "a", "b*"'],
  [{ per: 15 }, 'prices[0].per: expected 1, 10, 100 and so on, or one of "hour", "minute", "second"; got 15'],
  [
    { metric: "requests", per: "minute" },
    "prices[0].per: expected a power of ten, as requests is not measured in time",
  ],
  [
    {
      tiers: [
        { above: 5, price: 1 },
        { above: "5.0", price: 1 },
      ],
    },
    "prices[0].tiers[1].above: expected more than 5, each tier above the one before; got 5",
  ],
  [{ tiers: [{ above: 0, price: 1 }] }, "prices[0].tiers[0].above: expected more than 0"],
  [{ tiers: [{ above: "5,5", price: 1 }] }, "prices[0].tiers[0].above: expected a decimal number"],
  [{ tiers: [{ above: 5 }] }, "prices[0].tiers[0].price: missing; expected a decimal number"],
  [{ price: null, tiers: [{ above: 5, price: 1 }] }, 'prices[0].tiers: expected no tiers where "price" is null'],
  [{ modle: "x" }, 'prices[0].modle: unknown field; did you mean "model"?'],
])("a price with %j is refused, with the place and what to write", (part, says) => {
  const errors = errorsIn({ ...PRICE, ...part });
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain(says);
});

test("of two prices for the same usage both are named, and how to part them", () => {
  const other = { ...PRICE, model: "nova-*", endpoint: "listen", from: "2026-05-01" };
  expect(errorsIn(PRICE, { ...PRICE, metric: "requests" }, other)).toEqual([
    expect.stringMatching(
      /^- prices\[2\]: prices the same usage as prices\[0\]: usage has one price; end one of them with "until"/,
    ),
  ]);
  expect(errorsIn(PRICE, { ...PRICE, from: "2026-05-01" })).toEqual([]);
});
