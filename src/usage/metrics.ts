// The metrics of usage. The views, the configuration and the pages follow from these entries; CONTRIBUTING.md says how to add one. Pure.

import type { Source } from "./dimensions.ts";

type MetricEntry = {
  /** The name in the service and of the column. */
  readonly name: string;
  readonly label: string;
  readonly unit: "hours" | "tokens" | "characters" | "requests";
  /** The comment on its columns. */
  readonly meaning: string;
};

/** In the order of the columns. */
export const METRIC_TABLE = [
  { name: "hours", label: "Hours", unit: "hours", meaning: "Hours of audio, in hours" },
  {
    name: "total_hours",
    label: "Total hours",
    unit: "hours",
    meaning: "Hours including all processing, in hours, as the service counts them",
  },
  { name: "agent_hours", label: "Agent hours", unit: "hours", meaning: "Hours of agent connections, in hours" },
  { name: "tokens_in", label: "Tokens in", unit: "tokens", meaning: "Tokens received, a count" },
  { name: "tokens_out", label: "Tokens out", unit: "tokens", meaning: "Tokens produced, a count" },
  {
    name: "tts_characters",
    label: "TTS characters",
    unit: "characters",
    meaning: "Characters turned into speech, a count",
  },
  { name: "requests", label: "Requests", unit: "requests", meaning: "Requests to the service, a count" },
] as const satisfies readonly MetricEntry[];

export type Metric = (typeof METRIC_TABLE)[number]["name"];

export const METRICS = METRIC_TABLE.map(({ name }) => name) as readonly Metric[] as readonly [Metric, ...Metric[]];

export const STORED_METRICS = [...METRICS, "dollars"] as const;
export type StoredMetric = Metric | "dollars";

export const METRICS_OF: Readonly<Record<Source, readonly StoredMetric[]>> = { usage: METRICS, billing: ["dollars"] };

/** How easily a day counts as unusual, from the fewest alerts to the most. */
export const SENSITIVITIES = ["low", "normal", "high"] as const;

/** A day that is off by more than this many times the usual spread is unusual. docs/forecast.md explains the spread. */
export const TOLERANCES = { low: 8, normal: 6, high: 5 } as const;

export type AnomalySettings = { readonly sensitivity: keyof typeof TOLERANCES | "off" };

/** By unit: the least amount that the cliff guard protects and that can make a day unusual. Smaller amounts may fall to a tenth without a fault. */
export const GUARDED_FROM = { requests: 100, hours: 10, tokens: 10_000, characters: 10_000 } as const;
