import fc from "fast-check";
import { expect, test } from "vitest";
import { decimalText, ExactNumber } from "../../src/usage/json-value.ts";

const zeros = (count: number) => "0".repeat(count);

test.each<[string, string]>([
  ["0", "0"],
  ["-0", "0"],
  ["-0.0", "0"],
  ["0e-5", "0"],
  ["1.50", "1.5"],
  ["100.0", "100"],
  ["-0.25", "-0.25"],
  ["1e3", "1000"],
  ["1e+3", "1000"],
  ["1e-3", "0.001"],
  ["1.5e1", "15"],
  ["12.345e-2", "0.12345"],
  ["120e-1", "12"],
  ["1619.7242069444444", "1619.7242069444444"],
  ["9007199254740993", "9007199254740993"],
  ["0.1234567890123456789012345678901234567890", "0.123456789012345678901234567890123456789"],
  ["1234567890123456789012345678901234567890", "1234567890123456789012345678901234567890"],
  ["1e399", `1${zeros(399)}`],
  [`1${zeros(399)}`, `1${zeros(399)}`],
  ["1e308", `1${zeros(308)}`],
  ["5e-324", `0.${zeros(323)}5`],
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
