import fc from "fast-check";
import { expect, test } from "vitest";
import { ExactNumber } from "../../src/decimal.ts";
import { parseExact } from "../../src/service/answer.ts";

test.each([
  ["0", 0],
  ["-0", -0],
  ["100.000000000000000000", undefined],
  ["1e3", 1000],
  ["0e99999", undefined],
  ["1619.7242069444444", 1619.7242069444444],
  ["9007199254740992", 9007199254740992],
  ["9007199254740993.0e0", undefined],
  ["1.7976931348623157e+308", Number.MAX_VALUE],
  ["5e-324", Number.MIN_VALUE],
  ["9007199254740993", undefined],
  ["0.1000000000000000055511151231257827", undefined],
  ["1234567890123456789012345678901234567.891", undefined],
  ["1e999", undefined],
  ["1e-400", undefined],
])("the number %s comes back with its exact value", (source, number) => {
  const expected = number === undefined ? new ExactNumber(source) : number;
  expect(parseExact(`{"n":[${source}]}`)).toStrictEqual({ n: [expected] });
  expect(parseExact(`{"a": 1,\n  "n" :\t\r\n ${source} , "b": "2"}`)).toStrictEqual({ a: 1, n: expected, b: "2" });
  expect(parseExact(source)).toStrictEqual(expected);
});

test("a number with 200,000 zeros is parsed within the time limit of a test", () => {
  const source = `0.${"0".repeat(200_000)}1`;
  expect(parseExact(source)).toStrictEqual(new ExactNumber(source));
});

test.each([
  ["text that is no JSON", "<html>[]</html>"],
  ["an empty text", ""],
  ["a literal that is not a number of JSON", '{"n":NaN}'],
  ["a byte order mark", '\ufeff{"a":1}'],
])("%s is refused without being quoted", (_name, text) => {
  expect(() => parseExact(text)).toThrow(/^it is not valid JSON$/);
});

test.each([
  ["a value", '{"tag":"\\ud800"}'],
  ["an element", '["\\udc00"]'],
  ["a key", '{"a":{"\\ud800":1}}'],
])("half of a surrogate pair in %s is refused", (_name, text) => {
  expect(() => parseExact(text)).toThrow("half of a surrogate pair");
});

test("a whole surrogate pair is accepted", () => {
  expect(parseExact('["\\ud83d\\ude00"]')).toEqual(["😀"]);
});

test("more than 64 levels of nesting are refused", () => {
  const nested = (depth: number) => "[".repeat(depth) + "]".repeat(depth);
  expect(() => parseExact(nested(64))).not.toThrow();
  expect(() => parseExact(nested(65))).toThrow("nested more than 64 levels");
  expect(() => parseExact(nested(100_000))).toThrow("nested more than 64 levels");
});

test.each(['{"__proto__":{"polluted":true}}', '{"a":[{"\\u005f_proto__":1}]}'])(
  "a member named __proto__ is refused: %s",
  (text) => {
    expect(() => parseExact(text)).toThrow("it has a member named __proto__");
    expect("polluted" in {}).toBe(false);
  },
);

test("digits in text stay text", () => {
  const value = { tag: "9007199254740993", id: "1e9995-9e8", "12345678901234567890": 1 };
  expect(parseExact(JSON.stringify(value))).toStrictEqual(value);
});

test("every number that JSON.stringify writes is parsed to the same number", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
      expect(parseExact(JSON.stringify(number))).toBe(Object.is(number, -0) ? 0 : number);
    }),
  );
});

test("every whole number keeps its digits, as a number or as an ExactNumber", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n }), (whole) => {
      const value = parseExact(String(whole));
      expect(value instanceof ExactNumber ? value.source : String(value)).toBe(String(whole));
    }),
  );
});

test.each([
  '{"dollars":1,"dollars":2}',
  '{"results":[{"a":{"b":1}},{"a":{"b":"x:y","b":1}}]}',
  '{"a":":","a":1}',
  '{"a":"x","\\u0061":"x"}',
  '{"a":"\\u003a","a":1}',
])("an object with two members of one name is refused: %s", (text) => {
  expect(() => parseExact(text)).toThrow("two members of one name");
});

test.each(['{"a:b":1,"b":"c::d"}', '{"a":"\\u003a\\":"}', '[{"a":1},{"a":1}]', '{"a":"\\\\","b":":\\""}'])(
  "colons in texts and names are not counted as members: %s",
  (text) => {
    expect(parseExact(text)).toEqual(JSON.parse(text));
  },
);
