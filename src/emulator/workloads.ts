// The made-up customers of a project: which application sends what kind of request, and how many a day. Pure.

import { apiKeyId } from "./catalogue.ts";
import { pick, randomFrom } from "./random.ts";
import type { UsageRecord } from "./usage-record.ts";

const WORKLOADS = 48;
const ACCESSORS = 7;

type Choices<T> = readonly [T, ...T[]];
type Endpoint = "listen" | "speak" | "agent" | "read";

/** One kind of request: everything about it but the amounts of a day. */
export type Workload = Omit<UsageRecord, "endpoint" | "tags"> & {
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

export function workloadsOf(seed: number, projectId: string): Workload[] {
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
      // A few large customers and many small ones.
      dailyRequests: Math.round(10 ** (1.3 + 2 * random())),
    };
  });
}
