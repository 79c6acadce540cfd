// The schema of an export and of a rotation in jobs.config.json.

import { z } from "zod";
import { DIMENSION_VALUES, type Dimension, GROUPINGS } from "../usage/series.ts";
import { UNDATED } from "../usage/slice.ts";
import {
  FeatureName,
  FilePath,
  JitterSeconds,
  KeySource,
  Name,
  object,
  Schedule,
  Timezone,
  text,
  wholeNumber,
} from "./fields.ts";
import { describeValue } from "./messages.ts";
import { didYouMean, nearMiss } from "./suggestions.ts";

const FeatureValue = z
  .union([z.boolean(), text(200)], { error: "true, false or a string" })
  .superRefine((value, context) => {
    const guess = nearMiss(String(value), ["true", "false"]);
    if (guess === undefined || guess === String(value)) return;
    context.addIssue({
      code: "custom",
      message: `expected true, false or a string; got ${describeValue(value)}, which the service would take as it is; did you mean ${guess}?`,
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

// The shape of a rotation: which key is made anew, when, and where it is delivered.

const PLACEHOLDERS = ["{comment}", "{id}"];

const CommentTemplate = text(200).superRefine((template, context) => {
  const used: readonly string[] = template.match(/\{[^{}]*\}/g) ?? [];
  for (const placeholder of used.filter((used) => !PLACEHOLDERS.includes(used))) {
    const guess = didYouMean(placeholder, PLACEHOLDERS);
    context.addIssue({ code: "custom", message: `${placeholder} is none of {comment} and {id}${guess}` });
  }
  if (!used.includes("{comment}")) {
    context.addIssue({
      code: "custom",
      message:
        'expected a template with "{comment}", such as "{comment} [{id}]": the keys of a rotation are known by it',
    });
  }
});

const Sink = z.union(
  [
    object({
      file: FilePath.describe("The file to replace. A relative path starts at the folder of this file."),
    }),
    object({
      command: z
        .array(text(1000))
        .min(1)
        .describe("The program and its arguments, without a shell. The key comes on standard input."),
      timeoutSeconds: wholeNumber(1, 600).default(30).describe("How long the command may take."),
    }),
  ],
  { error: '{ "file": "PATH" } or { "command": ["PROGRAM", "ARGUMENT"] }' },
);

/** Also read by the check of expiresInDays, which can stand without the two. */
export const MAX_AGE_DAYS_DEFAULT = 30;
export const GRACE_DAYS_DEFAULT = 7;

export const Rotation = object({
  name: Name.describe("The rotation's name, as in `rotate --job NAME`."),
  schedule: Schedule.describe("When to look whether a key is due: a cron expression in the time zone."),
  timezone: Timezone.default("UTC").describe("The IANA time zone of the schedule."),
  jitterSeconds: JitterSeconds,
  project: Name.describe("The name of the project whose key is rotated."),
  createWith: KeySource.exactOptional().describe(
    "A separate key that creates and deletes the keys of this rotation: only this key needs keys:write. Left out: the project's key.",
  ),
  comment: text(200).describe("What the service shows beside the key."),
  commentTemplate: CommentTemplate.default("{comment} [{id}]").describe(
    "How the comment is written; {id} is the rotation's own id, by which a key whose secret was lost is found.",
  ),
  scopes: z
    .array(z.string().regex(/^[a-z][a-z0-9:_-]{0,99}$/, 'a scope or role such as "usage:read" or "member"'))
    .min(1)
    .describe('The scopes and roles of the new key, such as "member".'),
  tags: z.array(text(128)).default([]).describe("The tags of the new key."),
  maxAgeDays: wholeNumber(1, 3650).default(MAX_AGE_DAYS_DEFAULT).describe("The age at which a key is replaced."),
  graceDays: wholeNumber(0, 365)
    .default(GRACE_DAYS_DEFAULT)
    .describe("How long the previous key must not have been seen in use before it is due for removal."),
  expiresInDays: wholeNumber(1, 7300)
    .exactOptional()
    .describe("When the service lets the key die by itself. More than maxAgeDays and graceDays together."),
  deliver: z.array(Sink).default([]).describe("Where the new key is delivered, besides the sealed store."),
  retire: z
    .union([
      z.enum(["keep", "delete"]),
      object({
        delete: z
          .literal("by-age")
          .describe("Deletes the key even if the service's usage does not tell whether it is in use."),
      }),
    ])
    .default("keep")
    .describe(
      'What happens to a replaced key after its grace: "keep" lists it as due for removal; "delete" deletes it at the service once the usage by accessor covers the whole grace and does not show it.',
    ),
});
