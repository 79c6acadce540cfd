// Usage records of the emulator, their sums, and made-up usage: the same for the same seed, project and day. Pure.

import {
  DOCUMENTED_FEATURES,
  documentedValues,
  isSet,
  type SetDimension,
  USAGE_DIMENSIONS,
  type UsageDimension,
} from "../usage/dimensions.ts";
import { METRIC_TABLE, type Metric } from "../usage/metrics.ts";
import { isWeekend } from "./days.ts";

export type Amounts = Readonly<Record<Metric, number>>;
export type GroupValue = string | readonly string[] | null;

/** Two sets with the same members in another order are one group. */
export function sortedIfSet(value: GroupValue): GroupValue {
  return value === null || typeof value === "string" ? value : value.toSorted();
}

/**
 * A dimension left out is null, a metric left out is 0. Hours have at most six decimals and the other metrics none, so
 * that sums are exact. The features a request used are its `feature_set`. The line item and its dollars, a decimal number, follow from
 * the rest if they are left out.
 */
export type UsageRecord = Partial<Amounts> & {
  readonly [Name in UsageDimension]?: (Name extends SetDimension ? readonly string[] : string) | null;
} & {
  readonly line_item?: string | null;
  readonly dollars?: string;
};

/** The usage of a day that has arrived by now. `ageDays` is the time since the day began: from 1 on the day is over. */
export type UsageSource = (projectId: string, day: string, ageDays: number) => readonly UsageRecord[];

export function sumOf(records: readonly UsageRecord[]): Amounts {
  return eachMetric((metric, parts) => {
    const sum = records.reduce((sum, record) => sum + Math.round((record[metric] ?? 0) * parts), 0);
    return sum / parts;
  });
}

/** Rounded down. A greater share never gives a smaller amount. */
function shareOf(amounts: Amounts, share: number): Amounts {
  return eachMetric((metric, parts) => Math.floor(Math.round(amounts[metric] * parts) * share) / parts);
}

/** `parts`: in how many parts of a unit the metric is added up. Hours are added in millionths, so that a sum is exact. */
function eachMetric(amountOf: (metric: Metric, parts: number) => number): Amounts {
  const amounts = METRIC_TABLE.map(({ name, unit }) => [name, amountOf(name, unit === "hours" ? 1e6 : 1)]);
  return Object.fromEntries(amounts) as Amounts;
}

// Usage like that of a real project: the same for the same seed, project and day, whatever was requested before. Usage that arrives
// late is left out until it has arrived.

const WEEKEND_SHARE = 0.35;

/** On some days a workload has no requests, so that a group may be absent on a day. */
const IDLE_CHANCE = 0.1;

export function madeUpUsage(seed: number): UsageSource {
  return (projectId, day, ageDays) =>
    workloadsOf(seed, projectId).flatMap((workload, n) => {
      const random = randomFrom("usage", seed, projectId, day, n);
      if (random() < IDLE_CHANCE) return [];
      const share = shareArrived(ageDays, random());
      const amounts = shareOf(amountsOf(workload, day, random), share);
      if (amounts.requests === 0) return [];
      const { dailyRequests: _, tags, ...dimensions } = workload;
      // The order of tags has no meaning, and differs from day to day.
      return [{ ...dimensions, tags: tags && random() < 0.5 ? tags.toReversed() : tags, ...amounts }];
    });
}

/** The share of a day's usage that has arrived. It is final after three days. With a greater `lateness`, in [0, 1), more comes late. */
function shareArrived(ageDays: number, lateness: number): number {
  if (ageDays >= 3) return 1;
  if (ageDays >= 2) return 1 - 0.015 * lateness;
  const afterMidnight = 1 - 0.06 * lateness;
  return ageDays >= 1 ? afterMidnight : ageDays * afterMidnight;
}

function amountsOf({ endpoint, dailyRequests }: Workload, day: string, random: () => number): Amounts {
  const shape = isWeekend(day) ? WEEKEND_SHARE : 1;
  const requests = Math.max(1, Math.round(dailyRequests * shape * (0.75 + random() / 2)));
  const size = 0.5 + random();
  const audioHours = endpoint === "listen" || endpoint === "agent" ? millionths((requests * size * 240) / 3600) : 0;
  const isLanguageModel = endpoint === "agent" || endpoint === "read";
  return {
    // A metric that the table has and this function does not know counts requests.
    ...eachMetric(() => requests),
    hours: audioHours,
    // The processed audio is longer than the received audio, because each channel of a recording may be processed separately.
    total_hours: millionths(audioHours * (1 + random() / 20)),
    agent_hours: endpoint === "agent" ? audioHours : 0,
    tokens_in: isLanguageModel ? Math.round(requests * size * 900) : 0,
    tokens_out: isLanguageModel ? Math.round(requests * size * 210) : 0,
    tts_characters: endpoint === "speak" || endpoint === "agent" ? Math.round(requests * size * 400) : 0,
    requests,
  };
}

function millionths(hours: number): number {
  return Math.round(hours * 1e6) / 1e6;
}

// The workloads of a project: each is one kind of request, with how many of them a day has.

const WORKLOADS = 48;
const ACCESSORS = 7;

type Choices<T> = readonly [T, ...T[]];
type Endpoint = "listen" | "speak" | "agent" | "read";

/** One kind of request: its dimensions, and how many of them an ordinary weekday has. */
type Workload = Omit<UsageRecord, "endpoint" | "tags"> & {
  readonly endpoint: Endpoint;
  readonly tags: readonly string[] | null;
  readonly dailyRequests: number;
};

type Profile = {
  readonly methods: Choices<string>;
  readonly models: Choices<readonly string[] | null>;
  readonly featureSets: Choices<readonly string[]>;
};

const PROFILES: Readonly<Record<Endpoint, Profile>> = {
  listen: {
    methods: ["sync", "async", "streaming"],
    models: [["nova-3"], ["nova-3"], ["nova-2"], ["nova-3-medical"], ["enhanced"], ["whisper-large"]],
    featureSets: [
      ["punctuate", "smart_format"],
      ["diarize", "punctuate", "smart_format", "utterances"],
      ["diarize"],
      ["detect_language"],
      ["keyterm", "numerals"],
      [],
    ],
  },
  speak: {
    methods: ["sync", "streaming"],
    models: [["aura-2-thalia-en"], ["aura-asteria-en"]],
    featureSets: [["encoding", "sample_rate"], ["encoding"]],
  },
  agent: { methods: ["streaming"], models: [["nova-3", "aura-2-thalia-en"]], featureSets: [["smart_format"]] },
  read: { methods: ["sync"], models: [null], featureSets: [["summarize"], ["sentiment", "topics"]] },
};

const ENDPOINTS: Choices<Endpoint> = ["listen", "listen", "listen", "listen", "speak", "speak", "agent", "read"];
/** Six in eight workloads are hosted. */
const DEPLOYMENTS: Choices<string> = ["self-hosted", "beta", ...Array.from({ length: 6 }, () => "hosted")];
const TAG_SETS: Choices<readonly string[] | null> = [
  null,
  ...[["prod"], ["prod"], ["discovery", "prod"], ["staging"], ["call-centre", "prod"], ["call-centre"], ["mobile"]],
  ["batch", "research"],
];

function workloadsOf(seed: number, projectId: string): Workload[] {
  return Array.from({ length: WORKLOADS }, (_, n) => {
    const random = randomFrom("workload", seed, projectId, n);
    // In turn and not by chance, so that every project uses every endpoint.
    const endpoint = ENDPOINTS[n % ENDPOINTS.length] ?? "listen";
    const profile = PROFILES[endpoint];
    return {
      ...documented(randomFrom("dimensions", seed, projectId, n)),
      accessor: apiKeyId(projectId, n % ACCESSORS),
      endpoint,
      method: pick(profile.methods, random),
      model: pick(profile.models, random),
      feature_set: pick(profile.featureSets, random),
      tags: pick(TAG_SETS, random),
      deployment: pick(DEPLOYMENTS, random),
      // A few large workloads and many small ones.
      dailyRequests: Math.round(10 ** (1.3 + 2 * random())),
    };
  });
}

/** One of the documented values of each dimension that has some. */
function documented(random: () => number): Partial<UsageRecord> {
  return Object.fromEntries(
    USAGE_DIMENSIONS.flatMap((name) => {
      const [first, ...rest] = documentedValues(name, "usage") ?? [];
      if (first === undefined) return [];
      const value = pick([first, ...rest], random);
      return [[name, isSet(name) ? [value] : value]];
    }),
  );
}

// What the service knows by name: features, models and key ids; and the seeded random numbers that ids and usage follow from. Pure.

/** The features that can be filtered by. Get Fields also lists two that the service does not document. */
export const FEATURES: readonly string[] = [...DOCUMENTED_FEATURES, "aura-2", "Numerals.v2"];

/** The id that stands for a model in Get Fields, and in filters of the dialect "2026". */
export function modelId(name: string): string {
  return uuidFrom("model", name);
}

/**
 * The id of a project's nth API key made in the console. The accessors of made-up usage are the first of these ids, whether or not
 * such keys exist.
 */
export function apiKeyId(projectId: string, n: number): string {
  return uuidFrom("key", projectId, n);
}

// Seeded random numbers and ids: the same seed gives the same ones.

/** Random numbers in [0, 1), always the same sequence for the same parts. */
export function randomFrom(...parts: readonly (string | number)[]): () => number {
  let state = fnvHash(JSON.stringify(parts));
  // mulberry32: little code, and random enough for made-up usage.
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function uuidFrom(...parts: readonly (string | number)[]): string {
  const random = randomFrom(...parts);
  const digits = (count: number) =>
    Array.from({ length: count }, () => Math.floor(random() * 16).toString(16)).join("");
  return `${digits(8)}-${digits(4)}-4${digits(3)}-a${digits(3)}-${digits(12)}`;
}

export function pick<T>(choices: readonly [T, ...T[]], random: () => number): T {
  return choices[Math.floor(random() * choices.length)] ?? choices[0];
}

/** FNV-1a. */
function fnvHash(text: string): number {
  let value = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) value = Math.imul(value ^ byte, 0x01000193);
  return value;
}
