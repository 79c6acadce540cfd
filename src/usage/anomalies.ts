// The settings of the search for unusual days. Pure.

/** From the fewest alerts to the most. */
export const SENSITIVITIES = ["low", "normal", "high"] as const;
export type Sensitivity = (typeof SENSITIVITIES)[number];

/** How many times the usual spread a day may differ. docs/forecast.md has how many days each finds. */
export const TOLERANCES: Readonly<Record<Sensitivity, number>> = { low: 8, normal: 6, high: 5 };

export type AnomalySettings = {
  readonly sensitivity: Sensitivity | "off";
  /** A day with less, and of which less is expected, is not judged by that metric. */
  readonly minimum: Readonly<Record<"requests" | "hours" | "tokens" | "characters", number>>;
};
