// The schema of a rotation, of one project's key or of those of many projects.

import { z } from "zod";
import { GRACE_DAYS_DEFAULT, MAX_AGE_DAYS_DEFAULT } from "../keys/policy.ts";
import {
  FilePath,
  JitterSeconds,
  Name,
  object,
  reportingIssues,
  Schedule,
  Timezone,
  template,
  text,
  wholeNumber,
} from "./fields.ts";
import type { Path } from "./json.ts";
import { KeySource } from "./key-source.ts";
import type { ConfigIssue } from "./messages.ts";

import { hasPlaceholder, placeholderProblem } from "./patterns.ts";

const CommentTemplate = template(200, ["{comment}", "{id}"], (used) =>
  used.includes("{comment}")
    ? undefined
    : 'expected a template with "{comment}", such as "{comment} [{id}]": the keys of a rotation are known by it',
);

const Sink = z
  .union(
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
  )
  .transform((sink) =>
    "file" in sink ? { kind: "file" as const, path: sink.file } : { kind: "command" as const, ...sink },
  );

const Retire = z
  .union([
    z.enum(["keep", "delete"]),
    object({
      delete: z
        .literal("by-age")
        .describe("Deletes the key even if the service's usage does not tell whether it is in use."),
    }),
  ])
  .transform((retire) => (typeof retire === "string" ? retire : "delete-by-age"));

/** What stands for the project in the deliveries of a rotation of many projects. */
const DELIVERY_PLACEHOLDERS = ["project", "id"];

const Written = object({
  name: Name.describe("The rotation's name, as in `rotate --job NAME`."),
  schedule: Schedule.describe("When to check whether a key is due: a cron expression in the time zone."),
  timezone: Timezone.default("UTC").describe("The IANA time zone of the schedule."),
  jitterSeconds: JitterSeconds,
  project: Name.exactOptional().describe("The name of the project whose key is rotated."),
  projects: z
    .array(Name)
    .min(1)
    .exactOptional()
    .describe(
      "In place of `project`: the names of the projects that each get a key of their own. A name with * is a pattern: it stands for every project that it fits.",
    ),
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
    .describe(
      "After how many days the service itself lets the key expire. More than maxAgeDays and graceDays together.",
    ),
  deliver: z.array(Sink).prefault([]).describe("Where the new key is delivered, besides the sealed store."),
  retire: Retire.prefault("keep").describe(
    'What happens to a replaced key after its grace: "keep" lists it as due for removal; "delete" deletes it at the service once the usage by accessor covers the whole grace and does not show it.',
  ),
});

export const Rotation = Written.superRefine(reportingIssues(problemsOf));

export type WrittenRotation = z.output<typeof Rotation>;

/** What one field of a rotation says about another. */
function problemsOf({ project, projects, deliver }: z.output<typeof Written>) {
  const problems: ConfigIssue[] = [];
  const add = (path: Path, message: string) => void problems.push({ path, message });
  if (project === undefined && projects === undefined) add(["project"], 'missing; expected "project" or "projects"');
  if (project !== undefined && projects !== undefined) {
    add(["projects"], 'expected either "project" or "projects"; this rotation has both');
  }
  if (projects === undefined) return problems;
  for (const [i, sink] of deliver.entries()) {
    const texts = sink.kind === "file" ? [sink.path] : sink.command;
    const at = ["deliver", i, sink.kind];
    const unknown = texts.flatMap((one) => placeholderProblem(one, DELIVERY_PLACEHOLDERS) ?? [])[0];
    if (unknown !== undefined) add(at, unknown);
    else if (!texts.some(hasPlaceholder)) {
      add(at, 'expected "{project}" or "{id}" in it: otherwise each project would overwrite the key of the one before');
    } else if (sink.kind === "command" && hasPlaceholder(texts[0] ?? "")) {
      add(at, "expected a program without placeholders: they are for its arguments");
    }
  }
  return problems;
}
