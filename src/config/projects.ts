// The schemas of the entries of `projects` and of references to keys; names of keys; patterns of project names. Pure.

import { hash } from "node:crypto";
import { z } from "zod";
import type { Project } from "../usage/series.ts";
import { checked, Name, neverInThisFile, object, referenceForms, text, VariableName, wholeNumber } from "./fields.ts";
import { isKeyLike } from "./messages.ts";

/** The placeholder for a project's id, in the path of a file or in an argument of a command. */
const ID = "{id}";

/** Where a key is found or delivered. */
type KeyLocation = Readonly<
  { file: string } | { command: readonly string[] } | { env: string } | { first: KeyLocation }
>;

/** Whether the location differs from project to project. */
export function hasId(location: KeyLocation): boolean {
  return JSON.stringify(location).includes(ID);
}

export function fillInId<L extends KeyLocation>(location: L, id: string): L {
  if ("first" in location) return { ...location, first: fillInId(location.first, id) };
  if ("file" in location) return { ...location, file: location.file.replaceAll(ID, id) };
  if ("command" in location) return { ...location, command: location.command.map((text) => text.replaceAll(ID, id)) };
  return location;
}

function placeholderProblem(text: string): string | undefined {
  const unknown = text.match(/\{(?!id\})[A-Za-z]+\}/)?.[0];
  return unknown && `expected ${ID}, which stands for the project's id, and no other placeholder; got ${unknown}`;
}

const { Env, File, secretMessage } = referenceForms("key");

const FORMS = '{ "env": "NAME" }, { "file": "PATH" }';
const COMMAND_FORM = '{ "command": ["PROGRAM", "ARGUMENT"] }';

const KeyFile = object({
  file: checked(File.shape.file, placeholderProblem).describe(
    'A file that holds the key and nothing else; "{id}" stands for the project\'s id.',
  ),
});
const Command = object({
  command: checked(z.array(checked(text(1000), placeholderProblem)).min(1), commandProblem).describe(
    "The program and its arguments, without a shell. It prints the key, and nothing else.",
  ),
  timeoutSeconds: wholeNumber(1, 600).default(30).describe("How long the command may take."),
  variables: z.array(VariableName).default([]).describe("The environment variables it gets, besides PATH and HOME."),
});

const StaticKey = z.union([Env, KeyFile, Command], { error: `${FORMS} or ${COMMAND_FORM} ${neverInThisFile("key")}` });

function commandProblem([program = "", ...args]: readonly string[]): string | undefined {
  if (program.includes(ID)) return "expected a program without {id}: it is for the arguments";
  return args.some(isKeyLike) && /^(.*\/)?(echo|printf)$/.test(program) ? secretMessage : undefined;
}

const Rotated = object({
  rotation: Name.describe("The name of the rotation that makes the key."),
  first: StaticKey.describe("The key to use until the rotation has made one."),
});

export const KeySource = z
  .union([Env, KeyFile, Command, Rotated], {
    error: `${FORMS}, ${COMMAND_FORM} or { "rotation": "NAME", "first": { "env": "NAME" } } ${neverInThisFile("key")}`,
  })
  .describe("Where this project's key is found; never the key itself.");

/** The key that lists projects. No rotation can make it, because each key of a rotation belongs to one project. */
const ListKey = StaticKey.refine(
  (key) => !hasId(key),
  'expected no placeholder: this key lists the projects, before any is known; "projectKey" may have "{id}"',
);

const EXAMPLE_ID_PROBLEM = `expected your project's id at the service, which its console shows; "PROJECT_ID" is only a placeholder`;

const ProjectInFile = object({
  // A dot or a slash in the id, even an escaped one, could make a URL lead out of the project's path.
  id: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,128}$/, 'a project id: 1 to 128 letters, digits, "-" and "_"')
    .refine((id) => id !== "PROJECT_ID", EXAMPLE_ID_PROBLEM)
    .describe("The project's id at the service."),
  name: Name.describe("The project's name here, in exports, rotations and views."),
  key: KeySource,
});

export type ProjectInFile = z.output<typeof ProjectInFile>;

const Patterns = z.array(text(200));

const Discovery = object({
  discover: z.literal(true).describe("Reads every project that the service lists for the key."),
  key: ListKey.describe("The key that lists the projects; without `projectKey` it also reads their usage."),
  projectKey: StaticKey.exactOptional().describe("Where each project's key is found."),
  include: Patterns.min(1).prefault(["*"]).describe("Projects to read: patterns of their names or ids at the service."),
  exclude: Patterns.prefault([]).describe("Projects not to read, as for `include`."),
  backfill: wholeNumber(0, 3660).default(0).describe("How many days before a project's discovery to read."),
});

export type Discovery = z.output<typeof Discovery>;

export const ProjectEntry = z.union([ProjectInFile, Discovery], {
  error: '{ "id": "ID", "name": "NAME", "key": { … } } or { "discover": true, "key": { … } }',
});

export type KeyReference = z.output<typeof KeySource>;
/** A key that is found without the database. */
export type StaticKeyReference = z.output<typeof StaticKey>;
export type CommandReference = z.output<typeof Command>;

/** Names a key, and the list of projects read with it, in logs and in the database. Keys from the same source have the same name. */
export function keyName(key: KeyReference): string {
  if ("env" in key) return `env ${key.env}`;
  if ("file" in key) return `file ${key.file}`;
  if ("rotation" in key) return rotationKeyName(key.rotation);
  // The arguments may be long, so a hash stands for the command.
  return `command ${key.command[0]} ${hash("sha256", JSON.stringify(key.command)).slice(0, 16)}`;
}

export function rotationKeyName(rotation: string): string {
  return `rotation ${rotation}`;
}

/** In a pattern, * stands for any text. */
export function isPattern(text: string): boolean {
  return text.includes("*");
}

/** The pattern must match the whole text. A regular expression with many wildcards could take exponential time, so none is made. */
export function matchesPattern(pattern: string, text: string): boolean {
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop();
  if (last === undefined) return text === pattern;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of others) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at + last.length <= text.length && text.endsWith(last);
}

/** The projects that have one of these names or match one of these patterns, each once. */
export function projectsNamed(projects: readonly Project[], names: readonly string[]): Project[] {
  const byName = new Map(projects.map((project) => [project.name, project]));
  const named = names.flatMap((name) => {
    if (isPattern(name)) return projects.filter((project) => matchesPattern(name, project.name));
    return byName.get(name) ?? [];
  });
  return [...new Set(named)].map(({ id, name }) => ({ id, name }));
}
