// The shape of a rotation: which key is made anew, when, and where it is delivered.

import { z } from "zod";
import { FilePath, JitterSeconds, Name, object, Schedule, Timezone, text, wholeNumber } from "./fields.ts";
import { Key } from "./key-shape.ts";
import { didYouMean } from "./near-miss.ts";

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
  createWith: Key.exactOptional().describe(
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
