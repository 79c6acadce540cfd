import { expect, test } from "vitest";
import type { UsageRecord } from "../../src/emulator/usage.ts";
import { type Dialect, USAGE_DIMENSIONS } from "../../src/usage/dimensions.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import type { Emulator } from "../support/emulator.ts";
import { ask, breakdown, type Row, requestsBy, start } from "./ask.ts";

const GROUPINGS: Readonly<Record<Dialect, readonly string[]>> = {
  interface: ["accessor", "deployment", "endpoint", "feature_set", "method", "model", "tags"],
  "2026": ["accessor", "deployment", "endpoint", "feature_set", "method", "models", "tags"],
};
const WEEK = "start=2026-03-09&end=2026-03-15";

/** The sum of each metric by day, in millionths: sums of doubles would differ with the order of the rows. */
function sumByDay(rows: readonly Row[]): Record<string, number[]> {
  const sums: Record<string, number[]> = {};
  for (const row of rows) {
    const sum = sums[String(row.grouping.start)] ?? METRICS.map(() => 0);
    sums[String(row.grouping.start)] = METRICS.map((metric, i) => (sum[i] ?? 0) + Math.round(row[metric] * 1e6));
  }
  return sums;
}

const EACH_GROUPING = (["interface", "2026"] as const).flatMap((dialect) =>
  GROUPINGS[dialect].map((grouping) => ({ dialect, filter: "diarize=true&endpoint=listen", grouping })),
);

test.each(EACH_GROUPING)(
  "in dialect $dialect, the groups by $grouping with filter '$filter' add up to the total",
  async (c) => {
    await using emulator = await start({ dialect: c.dialect });
    const total = await breakdown(emulator, `${WEEK}&${c.filter}`);
    const grouped = await breakdown(emulator, `${WEEK}&${c.filter}&grouping=${c.grouping}`);
    expect(total.results).toHaveLength(7);
    expect(grouped.results.length).toBeGreaterThanOrEqual(7);
    expect(sumByDay(grouped.results)).toEqual(sumByDay(total.results));
  },
);

test("these groupings are all dimensions of usage", () => {
  expect(GROUPINGS.interface).toEqual(USAGE_DIMENSIONS);
  expect(GROUPINGS["2026"]).toHaveLength(USAGE_DIMENSIONS.length);
});

const RECORDS: readonly UsageRecord[] = [
  { model: ["nova-3"], feature_set: ["diarize"], tags: ["b", "a"], requests: 1 },
  { model: ["nova-3"], feature_set: ["diarize", "utterances"], tags: ["a", "b"], requests: 2 },
  { model: ["nova-3", "aura"], feature_set: ["utterances"], tags: ["a"], requests: 4 },
  { model: null, feature_set: [], tags: null, requests: 8 },
];
const DAY = "start=2026-03-10&end=2026-03-10";
const usage = () => RECORDS;

test.each<[string, number, Dialect]>([
  ["diarize=true", 3, "interface"],
  ["diarize=false", 12, "interface"],
  ["diarize=true&utterances=false", 1, "interface"],
  ["diarize=true&utterances=true", 7, "interface"],
  ["a_feature_nobody_knows=true", 15, "interface"],
  ["model=nova-3", 7, "interface"],
  ["tags=a", 7, "interface"],
  ["tag=a", 15, "interface"],
  ["tag=a", 7, "2026"],
  ["tags=a", 15, "2026"],
  ["feature_set=utterances", 15, "2026"],
  ["model=nova-3", 0, "2026"],
])("of 15 requests, the filter %s selects %i in dialect %s", async (filter, requests, dialect) => {
  await using emulator = await start({ usage, dialect });
  expect(await requestsBy(emulator, "", `${DAY}&${filter}`)).toEqual(requests === 0 ? [] : [[undefined, requests]]);
});

/** Written out, because the emulator would accept whatever the product's own list has. */
const FEATURES = `alternatives callback callback_method channels custom_intent custom_intent_mode custom_topic
  custom_topic_mode detect_entities detect_language diarize dictation encoding extra filler_words intents keyterm keywords
  language measurements multichannel numerals paragraphs profanity_filter punctuate redact replace sample_rate search
  sentiment smart_format summarize topics utt_split utterances version aura-2 Numerals.v2`.split(/\s+/);

test("usage can be narrowed to each feature that the service knows", async () => {
  await using emulator = await start({ usage: () => FEATURES.map((name) => ({ feature_set: [name], requests: 1 })) });
  for (const name of FEATURES) expect(await requestsBy(emulator, "", `${DAY}&${name}=true`)).toEqual([[undefined, 1]]);
});

test.each([
  ["interface", "models"],
  ["2026", "model"],
] as const)("dialect %s ignores the other dialect's grouping '%s'", async (dialect, grouping) => {
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

async function rowsAt(emulator: Emulator, instant: string, grouping = ""): Promise<Row[]> {
  emulator.now = () => new Date(instant);
  const { results } = await breakdown(emulator, `${DAY}&grouping=${grouping}`);
  return results;
}

test("most numbers of a day grow a day after its end", async () => {
  await using emulator = await start();
  const early = await rowsAt(emulator, "2026-03-11T00:00:00Z", "accessor");
  expect(await rowsAt(emulator, "2026-03-11T23:59:59Z", "accessor")).toEqual(early);

  const next = await rowsAt(emulator, "2026-03-12T00:00:00Z", "accessor");
  const restated = next.filter((row, i) => row.requests !== early[i]?.requests);
  expect(restated.length).toBeGreaterThan(next.length / 2);
  for (const later of [next, await rowsAt(emulator, "2026-03-13T00:00:00Z", "accessor")]) {
    const byAccessor = new Map(later.map((row) => [row.grouping.accessor, row]));
    for (const { grouping, requests, hours } of early) {
      expect(byAccessor.get(grouping.accessor)?.requests).toBeGreaterThanOrEqual(requests);
      expect(byAccessor.get(grouping.accessor)?.hours).toBeGreaterThanOrEqual(hours);
    }
  }
});

test("Get Fields lists the tags, models, methods and features of the requested days", async () => {
  await using emulator = await start({
    usage: (_, day) => [
      { model: ["nova-3"], method: "sync", tags: ["b", "a"], feature_set: ["utterances", "diarize"] },
      { model: null, method: null, tags: null },
      { model: ["nova-3", "aura"], method: "streaming", tags: [day] },
    ],
  });
  const response = await ask(emulator, "usage/fields?start=2026-03-09&end=2026-03-09");
  expect(await response.json()).toEqual({
    tags: ["2026-03-09", "a", "b"],
    models: [expect.objectContaining({ name: "aura" }), expect.objectContaining({ name: "nova-3" })],
    processing_methods: ["streaming", "sync"],
    features: ["diarize", "utterances"],
  });
});

test("in dialect 2026 a filter by the model id from Get Fields selects the model's usage", async () => {
  await using emulator = await start({ dialect: "2026", usage: () => [{ model: ["nova-3"], requests: 5 }] });
  const text = await (await ask(emulator, "usage/fields")).text();
  const id = /"model_id":"([^"]+)"/.exec(text)?.[1];
  const { results } = await breakdown(emulator, `start=2026-03-09&end=2026-03-09&model=${id}`);
  expect(results.map(({ requests }) => requests)).toEqual([5]);
});

test.each([
  ["start=2026-03-01&end=2026-03-02", "2026-03-01", "2026-03-02", 2],
  ["start=2026-03-02&end=2026-03-01", "2026-03-02", "2026-03-01", 0],
  ["start=2026-03-17&end=2026-03-20", "2026-03-17", "2026-03-20", 2],
  ["", "2026-02-16", "2026-03-17", 30],
  ["start=2026-03-15", "2026-03-15", "2026-03-17", 3],
  ["end=2026-01-31", "2026-01-02", "2026-01-31", 30],
])(
  "the query '%s' is answered for %s to %s, with rows for no day after today, 2026-03-18",
  async (query, first, last, days) => {
    await using emulator = await start({ usage: () => [{ requests: 1 }] });
    const answer = await breakdown(emulator, query);
    expect(answer).toMatchObject({ start: first, end: last, resolution: { units: "day", amount: 1 } });
    expect(answer.results).toHaveLength(days);
  },
);
