// The kinds of values the configuration is made of. Every message says what was expected, to stand behind "expected"; the
// messages of custom checks are whole sentences.

import { validateDetailed } from "node-cron";
import { z } from "zod";
import { shown } from "./fault.ts";
import { didYouMean } from "./near-miss.ts";

/**
 * An object that knows its fields: the message of its unknown ones is the list of those it has, as JSON, so that a fault
 * can name the nearest.
 */
export function object<Shape extends z.core.$ZodLooseShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  const known = JSON.stringify(Object.keys(shape));
  return z.strictObject(shape, { error: (issue) => (issue.code === "unrecognized_keys" ? known : undefined) });
}

/** Spaces at the ends and control characters can't be seen in a file and are never meant. */
export function text(lengthMax: number): z.ZodString {
  const expected = `a string of 1 to ${lengthMax} characters, without spaces at its ends and without control characters`;
  return z
    .string(expected)
    .max(lengthMax, expected)
    .regex(/^\S(?:.*\S)?$/, expected)
    .superRefine((value, context) => {
      // Apart from the pattern above, which stands in the JSON Schema, where not every editor knows classes like these.
      if (!/[\p{Cc}\p{Cs}]/u.test(value)) return;
      context.addIssue({ code: "invalid_format", format: "regex", message: expected, input: value });
    });
}

export function wholeNumber(min: number, max: number): z.ZodInt {
  const expected = `a whole number from ${min} to ${max}`;
  return z.int(expected).min(min, expected).max(max, expected);
}

export const Name = text(100);

export const Schedule = z.string().superRefine((expression, context) => {
  const [error] = validateDetailed(expression).errors;
  if (error === undefined) return;
  const reason =
    error.field === "expression" ? error.message : `its ${CRON_FIELDS[error.field] ?? error.field} is wrong`;
  context.addIssue({
    code: "custom",
    message: `expected a cron expression (minute hour day month weekday) such as "15 2 * * *"; got ${shown(expression)}: ${reason}`,
  });
});

const CRON_FIELDS: Readonly<Record<string, string>> = { dayOfMonth: "day", dayOfWeek: "weekday" };

export const Timezone = z.string().superRefine((zone, context) => {
  if (isTimezone(zone)) return;
  const guess = didYouMean(zone, ["UTC", ...Intl.supportedValuesOf("timeZone")]);
  context.addIssue({
    code: "custom",
    message: `expected a time zone such as "UTC" or "Europe/Vienna"; got ${shown(zone)}${guess}`,
  });
});

function isTimezone(zone: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: zone }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}

export const JitterSeconds = wholeNumber(0, 3600)
  .default(0)
  .describe(
    "Runs up to so many seconds later, each time another number: many installations then do not call at the same moment.",
  );

export const FilePath = text(1000).superRefine((path, context) => {
  if (!path.startsWith("~")) return;
  context.addIssue({ code: "custom", message: '"~" is not replaced by a home folder here: write the whole path' });
});
