// The metrics of usage: one entry for each, from which the columns of the views, the configuration, the pages and the words take theirs.
// CONTRIBUTING.md says how to add one. Pure.

import type { Source } from "./dimensions.ts";

type Entry = {
  /** The name in the service and of the column. */
  readonly name: string;
  /** What people call it. */
  readonly label: string;
  /** What an amount of it counts. */
  readonly unit: "hours" | "tokens" | "characters" | "requests";
  /** What the comments on its columns say. */
  readonly meaning: string;
};

/** In the order of the columns. */
export const METRIC_TABLE = [
  { name: "hours", label: "Hours", unit: "hours", meaning: "Hours of audio, in hours" },
  {
    name: "total_hours",
    label: "Total hours",
    unit: "hours",
    meaning: "Total hours, in hours, as the service counts them",
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
  { name: "requests", label: "Requests", unit: "requests", meaning: "Requests, a count" },
] as const satisfies readonly Entry[];

export type Metric = (typeof METRIC_TABLE)[number]["name"];

/** The metrics of usage with a column of their own. */
export const METRICS = METRIC_TABLE.map(({ name }) => name) as readonly Metric[] as readonly [Metric, ...Metric[]];

/** The metrics of both sources with a column of their own. */
export const STORED_METRICS = [...METRICS, "dollars"] as const;
export type StoredMetric = Metric | "dollars";

export const METRICS_OF: Readonly<Record<Source, readonly StoredMetric[]>> = { usage: METRICS, billing: ["dollars"] };

// The settings of the search for unusual days. Pure.

/** From the fewest alerts to the most. */
export const SENSITIVITIES = ["low", "normal", "high"] as const;
export type Sensitivity = (typeof SENSITIVITIES)[number];

/** How many times the usual spread a day may differ. docs/forecast.md has how many days each finds. */
export const TOLERANCES: Readonly<Record<Sensitivity, number>> = { low: 8, normal: 6, high: 5 };

export type AnomalySettings = { readonly sensitivity: Sensitivity | "off" };

/**
 * By the unit of a metric: a smaller amount is neither protected by the cliff guard nor judged as unusual. It may well be restated to a tenth,
 * such as a one-hour test under the wrong tag.
 */
export const GUARDED_FROM = { requests: 100, hours: 10, tokens: 10_000, characters: 10_000 } as const;
