// Usage records of the emulator, their sums, and made-up usage: the same for the same seed, project and day. Pure.

import {
  DOCUMENTED_FEATURES,
  dimension,
  memberNoun,
  type SetDimension,
  USAGE_DIMENSIONS,
  type UsageDimension,
} from "../usage/dimensions.ts";
import { METRIC_TABLE, type Metric } from "../usage/metrics.ts";
import { isWeekend } from "./days.ts";

export type UsageAmounts = Readonly<Record<Metric, number>>;
export type GroupValue = string | readonly string[] | null;

/** A list is a set: it is sorted, so that sets with the same members are one group, whatever their order. */
export function sortIfList(value: GroupValue): GroupValue {
  return value === null || typeof value === "string" ? value : value.toSorted();
}

/**
 * A missing dimension is null, a missing metric is 0. Hours have at most six decimals and the other metrics none, so that sums are exact.
 * `dollars` is a decimal number. The line item and its dollars, if left out, are computed from the other fields.
 */
export type UsageRecord = Partial<UsageAmounts> & {
  readonly [Name in UsageDimension]?: (Name extends SetDimension ? readonly string[] : string) | null;
} & {
  readonly line_item?: string | null;
  readonly dollars?: string;
};

/** The part of a day's usage that has arrived so far. `ageDays` is the time since the day began, so the day ends at 1. */
export type UsageSource = (projectId: string, day: string, ageDays: number) => readonly UsageRecord[];

export function sumOf(records: readonly UsageRecord[]): UsageAmounts {
  return eachMetric((metric, perUnit) => {
    return records.reduce((sum, record) => sum + Math.round((record[metric] ?? 0) * perUnit), 0) / perUnit;
  });
}

/** `perUnit` is 1,000,000 for hours, which are added up as whole millionths, so that a sum is exact. */
function eachMetric(amountOf: (metric: Metric, perUnit: number) => number): UsageAmounts {
  const amounts = METRIC_TABLE.map(({ name, unit }) => [name, amountOf(name, unit === "hours" ? 1e6 : 1)]);
  return Object.fromEntries(amounts) as UsageAmounts;
}

const WEEKEND_SHARE = 0.35;
/** The chance that a workload has no requests on a day, so that its groups may be absent. */
const IDLE_CHANCE = 0.1;

export function madeUpUsage(seed: number): UsageSource {
  return (projectId, day, ageDays) =>
    workloadsOf(seed, projectId).flatMap(({ dailyRequests, tags, ...dimensions }, n) => {
      const random = randomFrom("usage", seed, projectId, day, n);
      if (random() < IDLE_CHANCE) return [];
      const share = shareArrived(ageDays, random());
      const all = madeAmounts(dimensions.endpoint, dailyRequests, day, random);
      const amounts = eachMetric((metric, perUnit) => Math.floor(Math.round(all[metric] * perUnit) * share) / perUnit);
      if (amounts.requests === 0) return [];
      // The order of tags has no meaning, and differs from day to day.
      return [{ ...dimensions, tags: tags && random() < 0.5 ? tags.toReversed() : tags, ...amounts }];
    });
}

/** The share of a day's usage that has arrived: all of it after three days. The greater `lateness`, in [0, 1), the more comes late. */
function shareArrived(ageDays: number, lateness: number): number {
  if (ageDays >= 3) return 1;
  if (ageDays >= 2) return 1 - 0.015 * lateness;
  return Math.min(ageDays, 1) * (1 - 0.06 * lateness);
}

function madeAmounts(endpoint: Endpoint, dailyRequests: number, day: string, random: () => number): UsageAmounts {
  const dayShare = isWeekend(day) ? WEEKEND_SHARE : 1;
  const requests = Math.max(1, Math.round(dailyRequests * dayShare * (0.75 + random() / 2)));
  const size = 0.5 + random();
  const hours = endpoint === "listen" || endpoint === "agent" ? millionths((requests * size * 240) / 3600) : 0;
  const textAmount = endpoint === "agent" || endpoint === "read" ? requests * size : 0;
  return {
    // A metric that is not listed below gets the number of requests.
    ...eachMetric(() => requests),
    hours,
    // Each channel of a recording may be processed separately, so more hours are processed than received.
    total_hours: millionths(hours * (1 + random() / 20)),
    agent_hours: endpoint === "agent" ? hours : 0,
    tokens_in: Math.round(textAmount * 900),
    tokens_out: Math.round(textAmount * 210),
    tts_characters: endpoint === "speak" || endpoint === "agent" ? Math.round(requests * size * 400) : 0,
  };
}

function millionths(hours: number): number {
  return Math.round(hours * 1e6) / 1e6;
}

const WORKLOADS = 48;
const ACCESSORS = 7;

type Endpoint = "listen" | "speak" | "agent" | "read";
type Kind = readonly [Endpoint, method: string, model: readonly string[] | null, features: readonly string[]];

/** Workload n of every project makes requests of kind n. After the last kind, the first one is used again. */
const KINDS: readonly Kind[] = [
  ["listen", "sync", ["nova-3"], ["punctuate", "smart_format"]],
  ["listen", "streaming", ["nova-3"], ["diarize", "punctuate", "smart_format", "utterances"]],
  ["listen", "async", ["nova-2"], ["diarize"]],
  ["listen", "streaming", ["nova-3-medical"], ["keyterm", "numerals"]],
  ["speak", "sync", ["aura-2-thalia-en"], ["encoding", "sample_rate"]],
  ["speak", "streaming", ["aura-asteria-en"], ["encoding"]],
  ["agent", "streaming", ["nova-3", "aura-2-thalia-en"], ["smart_format"]],
  ["read", "sync", null, ["summarize"]],
  ["listen", "sync", ["enhanced"], []],
  ["listen", "async", ["whisper-large"], ["detect_language"]],
  ["listen", "sync", ["nova-3"], ["diarize"]],
  ["read", "sync", null, ["sentiment", "topics"]],
];
const DEPLOYMENTS = ["self-hosted", "beta", "hosted", "hosted", "hosted", "hosted", "hosted", "hosted"] as const;
const TAG_SETS: readonly [null, ...(readonly string[])[]] = [
  null,
  ...[["prod"], ["prod"], ["discovery", "prod"], ["staging"], ["call-centre", "prod"], ["call-centre"], ["mobile"]],
  ["batch", "research"],
];

/** Each workload of a project makes one kind of request, `dailyRequests` times on an ordinary weekday. */
function workloadsOf(seed: number, projectId: string) {
  return Array.from({ length: WORKLOADS }, (_, n) => {
    const random = randomFrom("workload", seed, projectId, n);
    const [endpoint, method, model, features] = KINDS[n % KINDS.length] as Kind;
    return {
      ...documentedDimensions(randomFrom("dimensions", seed, projectId, n)),
      ...{ accessor: apiKeyId(projectId, n % ACCESSORS), endpoint, method, model, feature_set: features },
      tags: pick(TAG_SETS, random),
      deployment: pick(DEPLOYMENTS, random),
      // A few large workloads and many small ones.
      dailyRequests: Math.round(10 ** (1.3 + 2 * random())),
    };
  });
}

/** For each dimension with documented values, one of them. Only dimensions whose values are sets have a `memberNoun`. */
function documentedDimensions(random: () => number): Partial<UsageRecord> {
  return Object.fromEntries(
    USAGE_DIMENSIONS.flatMap((name) => {
      const [first, ...rest] = dimension(name).values?.usage ?? [];
      if (first === undefined) return [];
      const value = pick([first, ...rest], random);
      return [[name, memberNoun(name) === undefined ? value : [value]]];
    }),
  );
}

/** The features that can be filtered by. Get Fields lists two that the service does not document. */
export const FEATURES: readonly string[] = [...DOCUMENTED_FEATURES, "aura-2", "Numerals.v2"];

/** The id that stands for a model in Get Fields, and in filters of the dialect "2026". */
export function modelId(name: string): string {
  return uuidFrom("model", name);
}

/** The id of a project's nth API key made in the console. Made-up usage has the first ids as accessors, even if the project has fewer keys. */
export function apiKeyId(projectId: string, n: number): string {
  return uuidFrom("key", projectId, n);
}

/** Random numbers in [0, 1), always the same sequence for the same seeds. */
export function randomFrom(...seeds: readonly (string | number)[]): () => number {
  // FNV-1a makes the first state, mulberry32 the later ones: little code, and random enough for made-up usage.
  let state = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(JSON.stringify(seeds))) state = Math.imul(state ^ byte, 0x01000193);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function uuidFrom(...seeds: readonly (string | number)[]): string {
  const random = randomFrom(...seeds);
  return "xxxxxxxx-xxxx-4xxx-axxx-xxxxxxxxxxxx".replaceAll("x", () => Math.floor(random() * 16).toString(16));
}

export function pick<T>(choices: readonly [T, ...T[]], random: () => number): T {
  return choices[Math.floor(random() * choices.length)] ?? choices[0];
}
