// The shape of an export: what is asked of the service, and when.

import { z } from "zod";
import { DIMENSION_VALUES, type Dimension, GROUPINGS } from "../usage/series.ts";
import { UNDATED } from "../usage/undated.ts";
import { shown } from "./fault.ts";
import { FeatureName } from "./feature-name.ts";
import { JitterSeconds, Name, object, Schedule, Timezone, text, wholeNumber } from "./fields.ts";
import { nearMiss } from "./near-miss.ts";

const FeatureValue = z
  .union([z.boolean(), text(200)], { error: "true, false or a string" })
  .superRefine((value, context) => {
    const guess = nearMiss(String(value), ["true", "false"]);
    if (guess === undefined || guess === String(value)) return;
    context.addIssue({
      code: "custom",
      message: `expected true, false or a string; got ${shown(value)}, which the service would take as it is; did you mean ${guess}?`,
    });
  });

const Dimensions = object({
  accessor: dimensionValue("accessor").describe("The public identifier of an API key."),
  deployment: dimensionValue("deployment").describe("The deployment type."),
  endpoint: dimensionValue("endpoint").describe("The endpoint used."),
  feature_set: dimensionValue("feature_set").describe(
    'The features used together. The dialect "2026" has no such filter.',
  ),
  method: dimensionValue("method").describe("The processing method."),
  model: dimensionValue("model").describe("The model used."),
  tags: dimensionValue("tags").describe("A tag used."),
});

/** Whether the interface names the value is for `checkFeatures` of the export: see references.ts. */
function dimensionValue(dimension: Dimension): z.ZodExactOptional<z.ZodString> {
  const listed = DIMENSION_VALUES[dimension];
  const value = text(256);
  return (listed === undefined ? value : value.meta({ examples: [...listed] })).exactOptional();
}

export const Filter = object({
  name: Name.describe("The filter's name in the views. The same name means the same conditions in every export."),
  features: z
    .record(FeatureName, FeatureValue)
    .prefault({})
    .describe("Features the usage was made with (true) or without (false). Several true ones are joined with OR."),
  dimensions: Dimensions.prefault({}).describe("One value for each dimension to narrow to."),
});

const Window = object({
  days: wholeNumber(1, 366).describe("How many complete days to read again at every run."),
  today: z.boolean().default(false).describe("Whether to add today, whose numbers still grow."),
});

export const Export = object({
  name: Name.describe("The export's name, as in `export --job NAME`."),
  schedule: Schedule.describe("When to run: a cron expression (minute hour day month weekday) in the time zone."),
  timezone: Timezone.default("UTC").describe("The IANA time zone of the schedule. Days of usage are always UTC days."),
  jitterSeconds: JitterSeconds,
  overlap: z
    .enum(["skip", "queue"])
    .default("skip")
    .describe("What happens to a run that is due while the run before it is still going: skipped, or run after it."),
  projects: z.array(Name).min(1).describe("The names of the projects to read."),
  window: Window.exactOptional().describe(
    "The days to ask for. Left out, no date is sent, and a missed night can't be filled later.",
  ),
  groupings: z
    .array(z.enum(GROUPINGS))
    .min(1)
    .describe('The breakdowns to read; "none" is the total. Each one is read under every filter.'),
  filters: z
    .array(Filter)
    .min(1)
    .prefault([{ name: "all" }])
    .describe("What to narrow the usage to. A filter without conditions is all usage."),
  checkFeatures: z
    .enum(["error", "warn", "off"])
    .default("error")
    .describe(
      "What happens to a filter by a feature, tag, model or other value that the service does not know: its interface does not name it, it never listed it, and its numbers do not prove it.",
    ),
  emptyGuard: z
    .enum(["confirm", "off"])
    .default("confirm")
    .describe(
      "Whether a day that had usage keeps its numbers if an answer has none, until a run at least an hour later confirms that answer.",
    ),
  cliffGuard: z
    .enum(["confirm", "off"])
    .default("confirm")
    .describe(
      "The same if an answer has over 90 % less than is stored for the day, counted by requests or, without any, by hours or another metric. Days of less than 100 requests, 10 hours or 10,000 tokens or characters are not guarded.",
    ),
  undated: z
    .enum(UNDATED)
    .default("snapshot")
    .describe(
      'Without a window: how an answer without any date is stored. "snapshot": as a snapshot of unknown span (bi.usage_snapshot). "day" and "day-before": as the usage of the day of the run or of the day before it; use these only if `check` proves it.',
    ),
});
