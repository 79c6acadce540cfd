import fc from "fast-check";
import { expect, test } from "vitest";
import { parseText, sampleWith } from "./sample-config.ts";

const PRICE = { metric: "hours", model: "nova-3", currency: "USD", price: "0.0077", from: "2026-01-01" };
/** The prices of a text, in which a number has all the digits that are written. */
const pricesOf = (text: string) => parseText(sampleWith("prices", "@").replace('"@"', text)).prices;

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
