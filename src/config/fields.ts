// Kinds of configuration values. messages.ts puts "expected" before messages of zod's own checks; those of `refine` and `checked` are complete.

import { Cron } from "croner";
import { validateDetailed } from "node-cron";
import { z } from "zod";
import { decimalText, ExactNumber } from "../decimal.ts";
import { errorText } from "../errors.ts";
import { isDay } from "../usage/days.ts";
import { BILLING_DIMENSIONS, DIMENSIONS } from "../usage/dimensions.ts";
import { GROUPINGS, groupingBy } from "../usage/series.ts";
import { describeValue, didYouMean, isKeyLike } from "./messages.ts";

/** An object that refuses unknown fields. The issue's message is a JSON list of the known fields, of which messages.ts makes a sentence. */
export function object<Shape extends z.core.$ZodLooseShape>(shape: Shape): z.ZodObject<Shape, z.core.$strict> {
  const known = JSON.stringify(Object.keys(shape));
  return z.strictObject(shape, { error: (issue) => (issue.code === "unrecognized_keys" ? known : undefined) });
}

/** Spaces at the ends and control characters can't be seen in a file and are never meant. */
export function text(lengthMax: number): z.ZodString {
  const expected = `a string of 1 to ${lengthMax} characters, without spaces at its ends and without control characters`;
  // One `check` for all rules: each call of a method copies the schema, and hundreds of copies noticeably delay the start of a command.
  return z.string(expected).check(
    z.maxLength(lengthMax, expected),
    z.regex(/^\S(?:.*\S)?$/, expected),
    z.superRefine((value, context) => {
      // This is not in the pattern above, as the JSON Schema repeats that one, and not every editor knows these character classes.
      if (!/[\p{Cc}\p{Cs}]/u.test(value)) return;
      context.addIssue({ code: "invalid_format", format: "regex", message: expected, input: value });
    }),
  );
}

/** Adds a rule to the schema: `problemOf` returns a message if a value breaks it. `path` leads to the field that the message is about. */
export function checked<S extends z.ZodType>(
  schema: S,
  problemOf: (value: z.output<S>) => string | undefined,
  path: readonly string[] = [],
): S {
  return schema.superRefine((value, context) => {
    const message = problemOf(value);
    if (message !== undefined) context.addIssue({ code: "custom", path: [...path], message });
  });
}

export function wholeNumber(min: number, max: number): z.ZodInt {
  const expected = `a whole number from ${min} to ${max}`;
  return z.int(expected).check(z.gte(min, expected), z.lte(max, expected));
}

export const Name = text(100);

export const Schedule = checked(z.string(), (expression) => {
  const reason = scheduleProblem(expression);
  const expected = 'expected a cron expression (minute hour day month weekday) such as "15 2 * * *"';
  return reason && `${expected}; got ${describeValue(expression)}: ${reason}`;
});

/** Two libraries must accept the expression: croner computes the times, and node-cron is the worker's timer. */
function scheduleProblem(expression: string): string | undefined {
  try {
    const cron = new Cron(expression, { paused: true, domAndDow: true, utcOffset: 0 });
    return validateDetailed(expression).errors[0]?.message ?? (cron.nextRun() ? undefined : "it never occurs");
  } catch (error) {
    return errorText(error).replace("CronPattern: ", "");
  }
}

export const Timezone = checked(z.string(), (zone) => {
  try {
    // UTC is not tried, because the first format of Intl takes 10 ms of CPU time.
    if (zone !== "UTC") new Intl.DateTimeFormat("en", { timeZone: zone });
    return undefined;
  } catch {
    const guess = didYouMean(zone, ["UTC", ...Intl.supportedValuesOf("timeZone")]);
    return `expected a time zone such as "UTC" or "Europe/Vienna"; got ${describeValue(zone)}${guess}`;
  }
});

export const FilePath = text(1000);

const EXPECTED_VARIABLE = 'the name of an environment variable (letters, digits and "_", without "$")';

export const VariableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, EXPECTED_VARIABLE);

/** Where a secret is found. `word` is what it is called in messages: "key", "token", "password" or "address". */
export function referenceForms(word: string) {
  const secretMessage = `this looks like the ${word} itself: put it in an environment variable and use { "env": "NAME" }`;
  // Variables are usually named in capitals; keys hardly ever have only capitals.
  const isSecretAsName = (name: string) => isKeyLike(name) && name !== name.toUpperCase();
  const isSecretAsPath = (path: string) => /^\w+:\/\//.test(path) || (isKeyLike(path) && !/[./\\]/.test(path));
  const env = VariableName.refine((name) => !isSecretAsName(name), secretMessage);
  const file = FilePath.refine((path) => !isSecretAsPath(path), secretMessage);
  const Env = object({ env: env.describe(`The environment variable that holds the ${word}.`) });
  const File = object({ file: file.describe(`A file that holds the ${word} and nothing else.`) });
  return { Env, File, secretMessage };
}

export function secretReference(word: string) {
  const { Env, File } = referenceForms(word);
  return z.union([Env, File], { error: `{ "env": "NAME" } or { "file": "PATH" } ${neverInThisFile(word)}` });
}

export type SecretReference = z.output<ReturnType<typeof secretReference>>;

export function neverInThisFile(word: string): string {
  return `(never write the ${word} itself into this file: put it in an environment variable and use { "env": "NAME" })`;
}

/** A feature becomes a parameter of the call. Named like a dimension or "start", it would give plausible but wrong numbers. */
export const FeatureName = checked(
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'the name of a feature: letters, digits, ".", "_" and "-"'),
  (feature) => {
    const name = feature.toLowerCase();
    if (/^groupings?$/.test(name)) return 'is no feature: it belongs in "groupings" of the export';
    if (/^(start|end)$/.test(name)) return 'is no feature: days belong in "window" of the export';
    const dimension = DIMENSIONS.find((known) => name === known || name === `${known}s` || `${name}s` === known);
    return dimension && `is no feature: it belongs in "dimensions" of this filter, as "${dimension}"`;
  },
);

export const FeatureValue = z.union([z.boolean(), text(200)], { error: "true, false or a string" }).transform(String);

const DimensionList = checked(z.array(z.enum(BILLING_DIMENSIONS)).min(1), (list) =>
  new Set(list).size < list.length ? "expected each dimension once" : undefined,
);

/** The output is the grouping's text. A refused list becomes "none", which nothing uses. */
export const GroupingSetting = z
  .union([z.enum([...GROUPINGS, "line_item"]), DimensionList], {
    error: 'a dimension, "none" or a list of dimensions such as ["tags", "line_item"]',
  })
  .transform((grouping) => (typeof grouping === "string" ? grouping : (groupingBy(grouping) ?? "none")));

/** The output has no slash at its end. */
export const BaseUrl = checked(z.string(), (text) => {
  const problem = urlProblem(text, "https://api.deepgram.com");
  if (problem !== undefined) return problem;
  const { protocol, hostname, host, pathname } = new URL(text);
  if (protocol === "http:" && !isLoopback(hostname)) {
    return `expected an https address, since a key is sent there (http is for this machine only); got "http://${host}": write "https://${host}"`;
  }
  return /\/v1\/?$/.test(pathname) ? 'expected the address without "/v1": it is added to it' : undefined;
}).transform((text) => new URL(text).href.replace(/\/+$/, ""));

/** The output has a slash at its end. */
export const PublicUrl = checked(z.string(), (text) => urlProblem(text, "https://usage.example.com")).transform(
  (text) => new URL(text).href.replace(/\/*$/, "/"),
);

/** Shows no address that may hold a password or a token. URL.canParse alone would accept spaces and backslashes. */
function urlProblem(text: string, example: string): string | undefined {
  if (/^https?:\/\/[^\s\\@?#<>"]+$/i.test(text) && URL.canParse(text)) return undefined;
  const got = /[@?#]/.test(text) ? "" : `; got ${describeValue(text)}`;
  return `expected an https address such as "${example}", without a user name, password, "?" or "#"${got}`;
}

export function isLoopback(hostname: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[?::1\]?)$/i.test(hostname);
}

const EXPECTED_DECIMAL = 'a decimal number of 0 or more, such as 0.0043 or "0.0043"';

/** The output is exact text. `parseJson` has made text of a number with more digits than a double holds. */
export const Decimal = z
  .union([z.number(EXPECTED_DECIMAL), z.string(EXPECTED_DECIMAL)], { error: EXPECTED_DECIMAL })
  .transform((value, { addIssue }) => {
    const source = String(value);
    const isDecimal = /^\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?$/.test(source);
    const decimal = isDecimal ? decimalText(new ExactNumber(source)) : undefined;
    if (decimal === undefined) addIssue(`expected ${EXPECTED_DECIMAL}; got ${describeValue(value)}`);
    return decimal ?? "";
  });

const EXPECTED_DAY = 'a day that exists, such as "2026-01-31"';

export const Day = checked(z.string(EXPECTED_DAY), (day) =>
  isDay(day) ? undefined : `expected ${EXPECTED_DAY}; got ${describeValue(day)}`,
);

const EXPECTED_CURRENCY = 'the code of a currency, such as "USD" or "EUR"';

export const Currency = checked(z.string(EXPECTED_CURRENCY), (code) => {
  const codes = Intl.supportedValuesOf("currency");
  if (codes.includes(code)) return undefined;
  return `expected ${EXPECTED_CURRENCY}; got ${describeValue(code)}${didYouMean(code, codes)}`;
});
