// Usage records of the emulator, their sums, and made-up usage: the same for the same seed, project and day. Pure.

import { apiKeyId, pick, randomFrom } from "./catalogue.ts";
import { isWeekend } from "./days.ts";

/** The metrics, and in how many parts of a unit each is added up. Hours are added in millionths, so that a sum is exact. */
const SCALE = {
  hours: 1e6,
  total_hours: 1e6,
  agent_hours: 1e6,
  tokens_in: 1,
  tokens_out: 1,
  tts_characters: 1,
  requests: 1,
} as const;

type Metric = keyof typeof SCALE;
export type Amounts = Readonly<Record<Metric, number>>;

/** By name, what the dialect of 2026 calls a dimension where it differs; null if it has no such filter. */
export const DIMENSIONS = {
  accessor: {},
  endpoint: {},
  feature_set: { filter2026: null },
  model: { grouping2026: "models" },
  method: {},
  tags: { filter2026: "tag" },
  deployment: {},
} as const satisfies Readonly<Record<string, { grouping2026?: string; filter2026?: string | null }>>;
export type Dimension = keyof typeof DIMENSIONS;

/** A request may have several values of these. */
type SetDimension = "feature_set" | "model" | "tags";

export type GroupValue = string | readonly string[] | null;

/**
 * A dimension left out is null, a metric left out is 0. Hours have at most six decimals and the other metrics none, so
 * that sums are exact. The features a request used are its `feature_set`. The line item and its dollars, a decimal number, follow from
 * the rest if they are left out.
 */
export type UsageRecord = Partial<Amounts> & {
  readonly [Name in Dimension]?: (Name extends SetDimension ? readonly string[] : string) | null;
} & {
  readonly line_item?: string | null;
  readonly dollars?: string;
};

/** The usage of a day that has arrived by now. `ageDays` is the time since the day began: from 1 on the day is over. */
export type UsageSource = (projectId: string, day: string, ageDays: number) => readonly UsageRecord[];

export function sumOf(records: readonly UsageRecord[]): Amounts {
  return eachMetric(
    (metric) =>
      records.reduce((sum, record) => sum + Math.round((record[metric] ?? 0) * SCALE[metric]), 0) / SCALE[metric],
  );
}

/** Rounded down. A greater share never gives a smaller amount. */
function shareOf(amounts: Amounts, share: number): Amounts {
  return eachMetric((metric) => Math.floor(Math.round(amounts[metric] * SCALE[metric]) * share) / SCALE[metric]);
}

function eachMetric(amountOf: (metric: Metric) => number): Amounts {
  const metrics = Object.keys(SCALE) as Metric[];
  return Object.fromEntries(metrics.map((metric) => [metric, amountOf(metric)])) as Amounts;
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

/** One kind of request: its dimensions, and how many of them a day has. */
type Workload = Omit<UsageRecord, "endpoint" | "tags"> & {
  readonly endpoint: Endpoint;
  readonly tags: readonly string[] | null;
  /** Requests on an ordinary weekday. */
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
  agent: {
    methods: ["streaming"],
    models: [["nova-3", "aura-2-thalia-en"]],
    featureSets: [["smart_format"]],
  },
  read: {
    methods: ["sync"],
    models: [null],
    featureSets: [["summarize"], ["sentiment", "topics"]],
  },
};

const ENDPOINTS: Choices<Endpoint> = ["listen", "listen", "listen", "listen", "speak", "speak", "agent", "read"];
const DEPLOYMENTS: Choices<string> = [
  "hosted",
  "hosted",
  "hosted",
  "hosted",
  "hosted",
  "hosted",
  "self-hosted",
  "beta",
];

const TAG_SETS: Choices<readonly string[] | null> = [
  null,
  ["prod"],
  ["prod"],
  ["discovery", "prod"],
  ["staging"],
  ["call-centre", "prod"],
  ["call-centre"],
  ["mobile"],
  ["batch", "research"],
];

function workloadsOf(seed: number, projectId: string): Workload[] {
  return Array.from({ length: WORKLOADS }, (_, n) => {
    const random = randomFrom("workload", seed, projectId, n);
    // In turn and not by chance, so that every project uses every endpoint.
    const endpoint = ENDPOINTS[n % ENDPOINTS.length] ?? "listen";
    const profile = PROFILES[endpoint];
    return {
      accessor: apiKeyId(seed, projectId, n % ACCESSORS),
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
