import { expect, test } from "vitest";
import type { UsageRecord } from "../../src/emulator/usage.ts";
import type { Dialect } from "../../src/usage/dimensions.ts";
import { type EmulatorOptions, startEmulator } from "../support/emulator.ts";
import { breakdown, CONSOLE_KEY, NOON, type Row, requestsBy } from "./ask.ts";

const METRICS = [
  "hours",
  "total_hours",
  "agent_hours",
  "tokens_in",
  "tokens_out",
  "tts_characters",
  "requests",
] as const;
const GROUPINGS: Readonly<Record<Dialect, readonly string[]>> = {
  interface: ["accessor", "deployment", "endpoint", "feature_set", "method", "model", "tags"],
  "2026": ["accessor", "deployment", "endpoint", "feature_set", "method", "models", "tags"],
};
const WEEK = "start=2026-03-09&end=2026-03-15";

const start = (options: Partial<EmulatorOptions> = {}) =>
  startEmulator({ consoleKeys: [CONSOLE_KEY], now: () => NOON, ...options });

/** The sums of the metrics for each day, in millionths, because sums of doubles would not be equal. */
function sumByDay(rows: readonly Row[]): Record<string, number[]> {
  const sums: Record<string, number[]> = {};
  for (const row of rows) {
    const sum = sums[String(row.grouping.start)] ?? METRICS.map(() => 0);
    sums[String(row.grouping.start)] = METRICS.map((metric, i) => (sum[i] ?? 0) + Math.round(row[metric] * 1e6));
  }
  return sums;
}

const addingUp = (["interface", "2026"] as const).flatMap((dialect) =>
  GROUPINGS[dialect].map((grouping) => ({ dialect, filter: "diarize=true&endpoint=listen", grouping })),
);

test.each(addingUp)(
  "in dialect $dialect, the groups by $grouping with filter '$filter' add up to the total",
  async (c) => {
    await using emulator = await start({ dialect: c.dialect });
    const total = await breakdown(emulator, `${WEEK}&${c.filter}`);
    const grouped = await breakdown(emulator, `${WEEK}&${c.filter}&grouping=${c.grouping}`);
    expect(total.results).toHaveLength(7);
    expect(grouped.results.length).toBeGreaterThan(7 - 1);
    expect(sumByDay(grouped.results)).toEqual(sumByDay(total.results));
  },
);

const RECORDS: readonly UsageRecord[] = [
  { model: ["nova-3"], feature_set: ["diarize"], tags: ["b", "a"], requests: 1 },
  { model: ["nova-3"], feature_set: ["diarize", "utterances"], tags: ["a", "b"], requests: 2 },
  { model: ["nova-3", "aura"], feature_set: ["utterances"], tags: ["a"], requests: 4 },
  { model: null, feature_set: [], tags: null, requests: 8 },
];
const DAY = "start=2026-03-10&end=2026-03-10";
const usage = () => RECORDS;

test.each([
  ["diarize=true", 3],
  ["diarize=true&utterances=true", 7],
  ["diarize=false", 12],
  ["diarize=false&utterances=false", 8],
  ["diarize=true&utterances=false", 1],
  ["a_feature_nobody_knows=true", 15],
  ["model=nova-3", 7],
  ["tags=a", 7],
  ["tag=a", 15],
])("of 15 requests, the filter %s selects %i", async (filter, requests) => {
  await using emulator = await start({ usage });
  expect(await requestsBy(emulator, "", `${DAY}&${filter}`)).toEqual(requests === 0 ? [] : [[undefined, requests]]);
});

test.each([
  ["tag=a", 7],
  ["tags=a", 15],
  ["feature_set=utterances", 15],
  ["model=nova-3", 0],
])("of 15 requests, the filter %s selects %i in dialect 2026", async (filter, requests) => {
  await using emulator = await start({ usage, dialect: "2026" });
  expect(await requestsBy(emulator, "", `${DAY}&${filter}`)).toEqual(requests === 0 ? [] : [[undefined, requests]]);
});

test.each([
  ["interface", "models"],
  ["2026", "model"],
] as const)("dialect %s has no grouping '%s', so that the answer is not grouped", async (dialect, grouping) => {
  await using emulator = await start({ dialect });
  expect(await breakdown(emulator, `${WEEK}&grouping=${grouping}`)).toEqual(await breakdown(emulator, WEEK));
});

test("in dialect interface a model is a text, or a list if a request used several", async () => {
  await using emulator = await start({ usage });
  expect(await requestsBy(emulator, "model", `${DAY}&grouping=model`)).toEqual([
    ["nova-3", 3],
    [["nova-3", "aura"], 4],
    [null, 8],
  ]);
});

test("the same tags in another order are one group, and usage without tags is a group", async () => {
  await using emulator = await start({ usage });
  expect(await requestsBy(emulator, "tags", `${DAY}&grouping=tags`)).toEqual([
    [["b", "a"], 3],
    [["a"], 4],
    [null, 8],
  ]);
});
