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
  /**
   * The cliff guard applies from this amount on. Smaller ones may well be restated to a tenth, such as a one-hour test under the wrong
   * tag.
   */
  readonly guardedFrom: number;
};

/** In the order of the columns. */
export const METRIC_TABLE = [
  {
    name: "hours",
    label: "Hours",
    unit: "hours",
    meaning: "Hours of audio, in hours",
    guardedFrom: 10,
  },
  {
    name: "total_hours",
    label: "Total hours",
    unit: "hours",
    meaning: "Total hours, in hours, as the service counts them",
    guardedFrom: 10,
  },
  {
    name: "agent_hours",
    label: "Agent hours",
    unit: "hours",
    meaning: "Hours of agent connections, in hours",
    guardedFrom: 10,
  },
  {
    name: "tokens_in",
    label: "Tokens in",
    unit: "tokens",
    meaning: "Tokens received, a count",
    guardedFrom: 10_000,
  },
  {
    name: "tokens_out",
    label: "Tokens out",
    unit: "tokens",
    meaning: "Tokens produced, a count",
    guardedFrom: 10_000,
  },
  {
    name: "tts_characters",
    label: "TTS characters",
    unit: "characters",
    meaning: "Characters turned into speech, a count",
    guardedFrom: 10_000,
  },
  {
    name: "requests",
    label: "Requests",
    unit: "requests",
    meaning: "Requests, a count",
    guardedFrom: 100,
  },
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

/** By the unit of a metric: a day with less, and of which less is expected, is not judged by it. */
export const JUDGED_MINIMUM = { requests: 100, hours: 10, tokens: 10_000, characters: 10_000 } as const;
