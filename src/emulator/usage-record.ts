// What the service has noted of some requests of one day: where they count in each dimension, and how much they used.

type Metric = "hours" | "total_hours" | "agent_hours" | "tokens_in" | "tokens_out" | "tts_characters" | "requests";
export type Amounts = Readonly<Record<Metric, number>>;

/** Dimensions by the service's names; `model` is called `models` by the dialect of 2026. */
export const DIMENSIONS = ["accessor", "endpoint", "feature_set", "model", "method", "tags", "deployment"] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export type GroupValue = string | readonly string[] | null;

/**
 * A dimension left out is null, a metric left out is 0. Hours have at most six decimals and the other metrics none, so
 * that sums are exact. The features a request used are its `feature_set`.
 */
export type UsageRecord = Partial<Amounts> & {
  readonly accessor?: string | null;
  readonly endpoint?: string | null;
  readonly feature_set?: readonly string[] | null;
  readonly model?: readonly string[] | null;
  readonly method?: string | null;
  readonly tags?: readonly string[] | null;
  readonly deployment?: string | null;
};

/** The usage of a day as it is known when the day has this age: see `ageDays`. */
export type UsageSource = (projectId: string, day: string, ageDays: number) => readonly UsageRecord[];

/** Millionths for hours, so that a sum has no error of floating point in it. */
const SCALE: Readonly<Record<Metric, number>> = {
  hours: 1e6,
  total_hours: 1e6,
  agent_hours: 1e6,
  tokens_in: 1,
  tokens_out: 1,
  tts_characters: 1,
  requests: 1,
};

export function sumOf(records: readonly UsageRecord[]): Amounts {
  return eachMetric(
    (metric) =>
      records.reduce((sum, record) => sum + Math.round((record[metric] ?? 0) * SCALE[metric]), 0) / SCALE[metric],
  );
}

/** Cut rather than rounded: a growing share never makes an amount smaller. */
export function shareOf(amounts: Amounts, share: number): Amounts {
  return eachMetric((metric) => Math.floor(Math.round(amounts[metric] * SCALE[metric]) * share) / SCALE[metric]);
}

function eachMetric(amountOf: (metric: Metric) => number): Amounts {
  return {
    hours: amountOf("hours"),
    total_hours: amountOf("total_hours"),
    agent_hours: amountOf("agent_hours"),
    tokens_in: amountOf("tokens_in"),
    tokens_out: amountOf("tokens_out"),
    tts_characters: amountOf("tts_characters"),
    requests: amountOf("requests"),
  };
}
