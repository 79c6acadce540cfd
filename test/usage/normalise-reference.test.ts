// The path from an answer's text to its slices, compared with the older, slower one: the same slices, hashes and errors for answers that are
// well-formed, and for many that are not.

import fc from "fast-check";
import { expect, test } from "vitest";
import { parseExact } from "../../src/service/answer.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import { normalise } from "../../src/usage/normalise.ts";
import type { UsageRequest } from "../../src/usage/plan.ts";
import { readReference } from "./reference-normalise.ts";
import { RUN_DAY, sampleRequest, windowless } from "./sample-request.ts";

const CASES = 50_000;

type Member = readonly [name: string, value: string];
const oneOf = (...values: readonly string[]) => fc.constantFrom(...values);

const usualAmount = oneOf("0", "1", "2", "373381", "9158866", "0.5", "0.7242069444", "3.7242069443999998", "null");
const unusualAmount = oneOf(
  ...["-0", "1.50", "1e3", "1E+2", "0.0000001", "1e-6", "1e21", "123456789012345678901234567890", "9007199254740993"],
  ...["100.000000000000000000", "0.1000000000000000055", "5e-324", "0e99999", "12e-0000000000000000001"],
);
const rarely = <T>(weight: number, common: fc.Arbitrary<T>, rare: fc.Arbitrary<T>) =>
  fc.oneof({ weight, arbitrary: common }, { weight: 1, arbitrary: rare });
const amount = rarely(15, usualAmount, unusualAmount);
const wrongAmount = oneOf(
  ...["-1", "1e999", "1e-999", "1e-400", "-1e-400", "9e-324", '"1"', "true", "[]", "{}", "[[1.0e-500]]", "01", "NaN"],
  ...[`${"[".repeat(70)}${"]".repeat(70)}`, `0.${"0".repeat(500)}1`],
);
const group = oneOf(
  ...[
    '"nova"',
    '["nova"]',
    '["a","b"]',
    '["b", "a","b"]',
    "null",
    "[]",
    '""',
    "[null]",
    '["a",null]',
    '"é"',
    '"\\u00e9"',
  ],
  ...[
    '"\\ud83d\\ude00"',
    '"\\u0000"',
    '"12345678901234567890"',
    '"1e-999"',
    '"[1e-999 ,"',
    '"absent"',
    '"null"',
    '"[\\"a\\"]"',
  ],
  ...Array.from({ length: 20 }, (_, i) => `"model-${i}-3f2504e0"`),
);
const wrongGroup = oneOf("3", '["a",3]', '{"a":1}', '"\\ud800"', '["\\udc00"]', "true", '[["a"]]');
const day = oneOf('"2026-03-16"', '"2026-03-17"', '"2026-03-17T00:00:00Z"');
const wrongDay = oneOf(
  '"2026-03-18"',
  '"2026-02-30"',
  "null",
  '""',
  "20260317",
  '"2026-03-17T01:00:00Z"',
  '"2027-03-17"',
);

const members = (name: fc.Arbitrary<string>, value: fc.Arbitrary<string>, maxLength: number): fc.Arbitrary<Member[]> =>
  fc.array(fc.tuple(name, value), { maxLength });

const text = (parts: readonly Member[], space: string) =>
  `{${space}${parts.map(([name, value]) => `"${name}"${space}:${value}`).join(`,${space}`)}}`;

const space = oneOf("", "", " ", "\n\t");
const row = fc
  .record({
    amounts: members(oneOf(...METRICS), rarely(150, amount, wrongAmount), 4),
    others: rarely(
      4,
      fc.constant<Member[]>([]),
      members(
        rarely(
          30,
          oneOf("credits", "zebra", "1", "constructor", "\\u0061", "\\ud83d\\ude00"),
          oneOf("\\ud800", "__proto__", "\\u005f_proto__"),
        ),
        rarely(20, amount, wrongAmount),
        3,
      ),
    ),
    day: rarely(100, day, wrongDay),
    group: rarely(100, group, wrongGroup),
    dimension: rarely(9, oneOf("model", "tags", "endpoint"), oneOf("models", "other")),
    shape: rarely(15, oneOf("nested"), oneOf("flat", "dates above", "without dates", "start only")),
    space,
  })
  .map(({ amounts, others, day: date, group: value, dimension, shape, space: gap }) => {
    const dates: Member[] =
      shape === "without dates"
        ? []
        : shape === "start only"
          ? [["start", date]]
          : [
              ["start", date],
              ["end", date],
            ];
    const dimensions: Member[] = [
      ["accessor", "null"],
      [dimension, value],
    ];
    if (shape === "flat") return text([...amounts, ...others, ...dates, ...dimensions], gap);
    const [above, within] = shape === "dates above" ? [dates, dimensions] : [[], [...dates, ...dimensions]];
    return text([["requests", "1"], ...amounts, ...others, ...above, ["grouping", text(within, gap)]], gap);
  });

/** A row that is sent twice, as it is or with another number. */
const rows = fc
  .tuple(fc.array(rarely(60, row, oneOf("null", "[]", '"row"', "3")), { maxLength: 4 }), fc.nat(20))
  .map(([all, twice]) => [
    ...all,
    ...all.slice(0, twice === 0 ? 1 : 0),
    ...all.slice(0, twice === 1 ? 1 : 0).map((one) => one.replace("1", "2")),
  ]);

const answer = fc
  .record({
    rows,
    start: rarely(30, fc.constant('"2026-03-16"'), rarely(1, day, wrongDay)),
    end: rarely(30, fc.constant('"2026-03-17"'), rarely(1, day, wrongDay)),
    resolution: rarely(
      30,
      fc.constant('{"units":"day","amount":1}'),
      oneOf("null", '{"units":"week","amount":1}', "3"),
    ),
    isWhole: rarely(60, fc.constant("whole"), oneOf("cut", "no results", "an array", "without dates", "two")),
    space,
  })
  .map(({ rows: all, start, end, resolution, isWhole, space: gap }) => {
    const dates: Member[] =
      isWhole === "without dates"
        ? []
        : [
            ["start", start],
            ["end", end],
          ];
    const whole = text([...dates, ["resolution", resolution], ["results", `[${all.join(`,${gap}`)}]`]], gap);
    if (isWhole === "cut") return whole.slice(0, -3);
    if (isWhole === "no results") return text([...dates, ["results", "null"]], gap);
    return isWhole === "an array" ? `[${whole}]` : isWhole === "two" ? `${whole}${whole}` : whole;
  });

const request = fc
  .tuple(fc.constantFrom("none", "model", "tags", "endpoint"), fc.nat(5))
  .map(([grouping, other]) => (other === 0 ? windowless(grouping) : sampleRequest(grouping)));

type Reading = (request: UsageRequest, text: string, askedAs: string) => unknown;

const read: Reading = (one, body, askedAs) => normalise(one, parseExact(body), RUN_DAY, askedAs);

const readAsBefore: Reading = (one, body, askedAs) =>
  readReference(one, body, RUN_DAY, askedAs).map(({ day: date, undated, rows: all, contentHash }) => ({
    day: date,
    undated,
    rowCount: all.length,
    contentHash,
    columns: {
      groups: all.map((each) => each.group),
      metrics: METRICS.map((_, i) => all.map(({ metrics }) => metrics.values[i])),
      extras: all.map(({ metrics }) => metrics.extra),
    },
  }));

/** What was read as JSON, or the error; and whether it was read. */
function outcome(reading: Reading, ...args: Parameters<Reading>): readonly [isRead: boolean, what: string] {
  try {
    const slices = reading(...args);
    return [
      true,
      JSON.stringify(slices, [
        "day",
        "undated",
        "rowCount",
        "contentHash",
        "columns",
        "groups",
        "key",
        "sent",
        "display",
        "metrics",
        "extras",
      ]),
    ];
  } catch (error) {
    return [false, String(error)];
  }
}

test("50,000 answers, many of them hostile, give the same slices, hashes and errors as before", ({
  onTestFinished,
}) => {
  // Most of the time would be spent on the stacks of errors.
  const { stackTraceLimit } = Error;
  onTestFinished(() => {
    Error.stackTraceLimit = stackTraceLimit;
  });
  Error.stackTraceLimit = 0;
  let accepted = 0;
  const errors = new Set<string>();
  fc.assert(
    fc.property(request, answer, fc.boolean(), (one, body, isRenamed) => {
      const askedAs = isRenamed ? "models" : one.series.grouping;
      const [isRead, before] = outcome(readAsBefore, one, body, askedAs);
      const [, now] = outcome(read, one, body, askedAs);
      if (now !== before) expect({ now, body }).toEqual({ now: before, body });
      if (isRead) accepted++;
      else errors.add(before.replaceAll(/\d+|".*"/g, ""));
    }),
    { numRuns: CASES },
  );
  expect(accepted).toBeGreaterThan(CASES / 4);
  expect(accepted).toBeLessThan(CASES * 0.75);
  expect(errors.size).toBeGreaterThan(20);
});
