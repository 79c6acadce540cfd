// Messages about the configuration: where, what was expected, what was found. None shows a value that may be a secret. Pure.

import leven from "leven";
import type { z } from "zod";
import { AppError, systemCode } from "../errors.ts";
import { firstNames } from "../text.ts";
import type { ConfigIssue, JsonDocument, Path } from "./json.ts";

/** A long run of letters and digits, mixed, as keys have and names given by people do not. */
const KEY_LIKE = /(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{20,}/;
const SCHEME_AND_KEY = /^\s*(token|bearer|basic)\s/i;

export function isKeyLike(text: string): boolean {
  return KEY_LIKE.test(text) || SCHEME_AND_KEY.test(text);
}

/** `exports[0].groupings[2]` */
export function formatPath(path: Path): string {
  const segments = path.map((segment) => {
    const isPlain = typeof segment === "string" && /^[$\w]+$/.test(segment) && !isKeyLike(segment);
    return isPlain ? `.${segment}` : `[${describeValue(segment)}]`;
  });
  return segments.join("").replace(/^\./, "") || "the top level";
}

/** Where the file refers to a secret, the value may be the secret itself, and is not shown. */
export function describeReceived(path: Path, value: unknown): string {
  const [top, field] = path;
  const isSecret =
    isKeyPath(path) || (top === "notify" && field !== "report") || (top === "monitor" && field === "access");
  return isSecret ? `${kindOf(value)}, not shown here` : describeValue(value);
}

function isKeyPath([list, , field]: Path): boolean {
  if (list === "projects") return field === "key" || field === "projectKey";
  return list === "rotations" && field === "createWith";
}

const SHOWN_LENGTH_MAX = 60;
const FIELD_NAMES_SHOWN_MAX = 5;

/** The value, shortened. Text that looks like a key is not shown. */
export function describeValue(value: unknown): string {
  if (typeof value === "string") return quoteText(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return kindOf(value);
  const names = Object.keys(value).slice(0, FIELD_NAMES_SHOWN_MAX).map(quoteText);
  return names.length === 0 ? "an empty object" : `an object with ${names.join(", ")}`;
}

function quoteText(text: string): string {
  if (isKeyLike(text)) return "a string that is not shown: it looks like a key";
  return JSON.stringify(text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

const ISSUES_SHOWN_MAX = 100;

/** One line for each issue, in the order of the file. An issue that two checks report gets one line. */
export function configError(source: string, issues: readonly ConfigIssue[], document: JsonDocument): AppError {
  const sorted = [...new Map(issues.map((issue) => [JSON.stringify(issue), issue])).values()]
    .map((issue) => ({ ...issue, offset: document.offsetOf(issue.path) }))
    .sort((a, b) => a.offset - b.offset);
  const lines = sorted
    .slice(0, ISSUES_SHOWN_MAX)
    .map(({ path, offset, message }) => `- ${formatPath(path)} (line ${document.lineOf(offset)}): ${message}`);
  if (sorted.length > lines.length) lines.push(`- and ${sorted.length - lines.length} more`);
  const count = sorted.length === 1 ? "1 error" : `${sorted.length} errors`;
  return new AppError("config", [`${source} has ${count}:`, ...lines].join("\n"));
}

// Zod's own messages do not suggest the right field, and for a union they name every alternative.

type ZodIssue = z.core.$ZodIssue;

/** What follows the word "expected" in a message, if the schema gives no text for the check. */
export function defaultExpectation(issue: z.core.$ZodRawIssue): string {
  if (issue.code === "invalid_value") return oneOf(issue.values.map(String));
  if (issue.code === "too_small") return "at least one entry";
  return issue.code === "invalid_type" ? (KIND_NAMES[issue.expected] ?? issue.expected) : issue.code;
}

const KIND_NAMES: Readonly<Record<string, string>> = {
  array: "a list [ … ]",
  boolean: "true or false",
  object: "an object { … }",
  record: "an object { … }",
  string: "a string",
};

export function toConfigIssues(issues: readonly ZodIssue[], base: Path = []): ConfigIssue[] {
  return issues.flatMap((issue): ConfigIssue[] => {
    const path = [...base, ...(issue.path as Path)];
    if (issue.code === "custom") return [{ path, message: issue.message }];
    if (issue.code === "invalid_key") return toConfigIssues(issue.issues, path);
    if (issue.code === "invalid_union") return unionIssues(issue, path);
    if (issue.code !== "unrecognized_keys") return [{ path, message: unexpectedMessage(issue, path) }];
    const unknown = issue.keys.map((name) => [...path, name]);
    return unknown.map((at) => ({ path: at, message: unknownFieldMessage(at, knownFields(issue)) }));
  });
}

const WRONG_KIND = 1_000;

/** Returns the issues of the alternative that fits best; one issue that names all if several do, or a plain value is of no alternative's kind. */
function unionIssues(issue: z.core.$ZodIssueInvalidUnion, path: Path): ConfigIssue[] {
  const { input, errors } = issue;
  const alternatives = errors.map((issues) => ({ issues, misfit: misfit(issues, input) }));
  const [best, second] = alternatives.sort((a, b) => a.misfit - b.misfit);
  const isObject = typeof input === "object" && input !== null;
  const isClear = best !== undefined && best.misfit < (second?.misfit ?? WRONG_KIND);
  if (isClear && (isObject || best.misfit < WRONG_KIND)) return toConfigIssues(best.issues, path);
  const unknown = errors.flat().filter((one) => one.code === "unrecognized_keys");
  const known = unknown.flatMap(knownFields);
  const unknownToAll = new Set(unknown.flatMap(({ keys }) => keys)).difference(new Set(known));
  const guesses = [...unknownToAll].map((name) => didYouMean(name, known));
  return [{ path, message: `${unexpectedMessage(issue, path)}${guesses.join("")}` }];
}

/** How badly the input fits an alternative: its number of issues, plus WRONG_KIND if the input is of another kind. */
function misfit(issues: readonly ZodIssue[], input: unknown): number {
  const isWrongKind = (issue: ZodIssue) => {
    const isValue = issue.code === "invalid_value";
    // Below the top level, the kind is wrong only if a field that marks an alternative, such as `"discover": true`, is missing.
    if (issue.path.length > 0) return isValue && issue.input === undefined && issue.values.length === 1;
    return isValue ? typeof input !== "string" : ["unrecognized_keys", "invalid_type"].includes(issue.code);
  };
  return issues.length + (issues.some(isWrongKind) ? WRONG_KIND : 0);
}

function unexpectedMessage(issue: ZodIssue, path: Path): string {
  const { input, message: expectation } = issue;
  if (input === undefined) return `missing; expected ${expectation}`;
  const isMisspelt = issue.code === "invalid_value" && typeof input === "string";
  const guess = isMisspelt ? didYouMean(input, issue.values.map(String)) : "";
  return `expected ${expectation}; got ${describeReceived(path, input)}${guess}`;
}

function unknownFieldMessage(path: Path, known: readonly string[]): string {
  const name = String(path.at(-1));
  const guess = didYouMean(name, known);
  if (guess !== "") return `unknown field${guess}`;
  const isKey = isKeyPath(path) || /key|token|secret|password/i.test(name);
  const hint = isKey ? '; never write a key itself into this file: a project has "key": { "env": "NAME" }' : "";
  return `unknown field; expected ${oneOf(known)}${hint}`;
}

/** `object` in fields.ts puts the known fields into the message of the issue, as JSON. */
function knownFields({ message }: z.core.$ZodIssueUnrecognizedKeys): string[] {
  return JSON.parse(message);
}

export function oneOf(names: readonly string[]): string {
  return names.length === 1 ? quoteAll(names) : `one of ${quoteAll(names)}`;
}

const NAMES_SHOWN_MAX = 30;

/** Quotes the names. A long list is cut, because there may be thousands of projects. */
export function quoteAll(names: readonly string[]): string {
  const quoted = names.map((name) => JSON.stringify(name));
  return firstNames(quoted, NAMES_SHOWN_MAX);
}

/** Throws `config` if a name given to the option is unknown. `fault` says what is wrong with the quoted name. */
export function requireKnown(
  option: string,
  given: readonly string[] | undefined,
  known: readonly string[],
  fault = (quotedName: string) => `${quotedName} is not configured`,
): void {
  const unknown = given?.find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const found = `${fault(JSON.stringify(unknown))} (there is ${quoteAll(known) || "none"})`;
  throw new AppError("config", `${option}: ${found}${didYouMean(unknown, known)}`);
}

const FILE_ERROR_REASONS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist",
  EISDIR: "is a folder",
  EACCES: "may not be read by this user",
  EPERM: "may not be read by this user",
  ENXIO: "is not a regular file",
  ETIMEDOUT: "could not be read: its file system does not answer",
};

export function fileReadProblem(file: string, error: unknown): string {
  const code = systemCode(error);
  return `${file} ${FILE_ERROR_REASONS[code] ?? `could not be read (${code || "unknown reason"})`}`;
}

/** Shorter words are contained in too many others. */
const PART_LENGTH_MIN = 3;

/** Returns `; did you mean "model"?` with the most similar candidate, else with the only one that contains the word or starts it, else "". */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const wanted = comparable(word);
  const known = candidates.map((candidate) => ({ candidate, name: comparable(candidate) }));
  const [nearest] = known
    .map(({ candidate, name }) => ({ candidate, distance: leven(wanted, name) }))
    .filter(({ distance }) => distance <= Math.ceil(wanted.length / 3))
    .sort((a, b) => a.distance - b.distance);
  const [related, ...others] = known.filter(
    ({ name }) =>
      Math.min(wanted.length, name.length) >= PART_LENGTH_MIN && (name.includes(wanted) || wanted.startsWith(name)),
  );
  const guess = nearest ?? (others.length === 0 ? related : undefined);
  return guess === undefined ? "" : `; did you mean ${JSON.stringify(guess.candidate)}?`;
}

function comparable(word: string): string {
  return word.toLowerCase().replaceAll(/[\s_-]/g, "");
}
