// Issues of the configuration in words: each with its path, line, what was expected and what was found. A value is shown only
// where it can't be a secret. Pure.

import type { z } from "zod";
import { AppError } from "../errors.ts";
import { didYouMean } from "./suggestions.ts";

export type Path = readonly (string | number)[];

/** Both counted from 1. */
export type Position = { readonly line: number; readonly column: number };

export type ConfigIssue = { readonly path: Path; readonly message: string };

const SHOWN_LENGTH_MAX = 60;
const FIELD_NAMES_SHOWN_MAX = 5;

/** A long run of letters and digits, mixed: so look keys, and no name that a person gives. */
const KEY_LIKE = /(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{20,}/;
export const SCHEME_AND_KEY = /^\s*(token|bearer|basic)\s/i;

export function isKeyLike(text: string): boolean {
  return KEY_LIKE.test(text) || SCHEME_AND_KEY.test(text);
}

/** `exports[0].groupings[2]` */
export function formatPath(path: Path): string {
  if (path.length === 0) return "the top level";
  return path.map(formatSegment).join("").replace(/^\./, "");
}

function formatSegment(segment: string | number): string {
  if (typeof segment === "number") return `[${segment}]`;
  return /^[$\w]+$/.test(segment) && !isKeyLike(segment) ? `.${segment}` : `[${describeValue(segment)}]`;
}

/** What came, for a message. */
export function describeReceived(path: Path, value: unknown): string {
  return isProjectKeyPath(path) || isSecretPath(path) ? `${kindOf(value)}, not shown here` : describeValue(value);
}

/** An address in `notify`, a token or password in `monitor.access`: what stands in their place may be the secret itself. */
function isSecretPath(path: Path): boolean {
  return path[0] === "notify" || (path[0] === "monitor" && path[1] === "access");
}

/** Nothing of a project's `key` is repeated: what stands there may be the key itself. */
function isProjectKeyPath(path: Path): boolean {
  return path[0] === "projects" && path[2] === "key";
}

/** A value shortened, and never what looks like a key. */
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

/** Each fault is a line, in the order of the file. The same place and words from two checks are one fault. */
export function configError(
  source: string,
  faults: readonly ConfigIssue[],
  positionOf: (path: Path) => Position,
): AppError {
  const lines = faults
    .map((fault) => ({ ...fault, position: positionOf(fault.path) }))
    .sort((a, b) => a.position.line - b.position.line || a.position.column - b.position.column)
    .map(({ path, position, message }) => `- ${formatPath(path)} (line ${position.line}): ${message}`);
  const different = [...new Set(lines)];
  const count = different.length === 1 ? "1 fault" : `${different.length} faults`;
  return new AppError("config", [`${source} has ${count}:`, ...different].join("\n"));
}

// What zod found, as faults in our words. Its own texts name no field that would be right, and its unions name every branch.

type ZodIssue = z.core.$ZodIssue;

/** What is expected where the shape has no words of its own. */
export function defaultExpectation(issue: z.core.$ZodRawIssue): string {
  if (issue.code === "invalid_value") return oneOf(issue.values.map((value) => JSON.stringify(value)));
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

/** `messages` of the issues must be expectations: see fields.ts. */
export function toConfigIssues(issues: readonly ZodIssue[], base: Path = []): ConfigIssue[] {
  return issues.flatMap((issue) => issuesFromZod(issue, [...base, ...issue.path.map(toPathSegment)]));
}

function toPathSegment(segment: PropertyKey): string | number {
  return typeof segment === "number" ? segment : String(segment);
}

function issuesFromZod(issue: ZodIssue, path: Path): ConfigIssue[] {
  switch (issue.code) {
    case "custom":
      return [{ path, message: issue.message }];
    case "unrecognized_keys":
      return issue.keys.map((name) => ({
        path: [...path, name],
        message: unknownFieldMessage([...path, name], knownFields(issue)),
      }));
    case "invalid_key":
      return toConfigIssues(issue.issues, path);
    case "invalid_union":
      return unionIssues(issue, path);
    default:
      return [{ path, message: unexpectedMessage(issue, path) }];
  }
}

/** The one form of an alternative that was meant, where that is clear; else all of them. */
function unionIssues(issue: z.core.$ZodIssueInvalidUnion, path: Path): ConfigIssue[] {
  // The input is a text and one of several words was expected: only those words are reported, even if the union also allows other
  // types.
  const words = issue.errors.find(([inner]) => typeof issue.input === "string" && inner?.code === "invalid_value");
  if (words) return toConfigIssues(words, path);
  const forms = issue.errors.map((form) => toConfigIssues(form, path)).sort((a, b) => a.length - b.length);
  const [nearest, second] = forms;
  if (nearest && second && nearest.length < second.length) return nearest;

  const unknown = issue.errors.flat().filter((inner) => inner.code === "unrecognized_keys");
  const known = unknown.flatMap(knownFields);
  const names = new Set(unknown.flatMap((inner) => inner.keys).filter((name) => !known.includes(name)));
  const guesses = [...names].map((name) => didYouMean(name, known));
  return [{ path, message: `${unexpectedMessage(issue, path)}${guesses.join("")}` }];
}

function unexpectedMessage(issue: ZodIssue, path: Path): string {
  const { input, message } = issue;
  if (input === undefined) return `missing; expected ${message}`;
  const guess =
    issue.code === "invalid_value" && typeof input === "string" ? didYouMean(input, issue.values.map(String)) : "";
  return `expected ${message}; got ${describeReceived(path, input)}${guess}`;
}

function unknownFieldMessage(path: Path, known: readonly string[]): string {
  const name = String(path.at(-1));
  const guess = didYouMean(name, known);
  if (guess !== "") return `unknown field${guess}`;
  const fields = `unknown field; expected ${oneOf(known.map((field) => JSON.stringify(field)))}`;
  if (!isProjectKeyPath(path) && !/key|token|secret|password/i.test(name)) return fields;
  return `${fields}; a key itself never stands in this file: a project has "key": { "env": "NAME" }`;
}

function knownFields(issue: z.core.$ZodIssueUnrecognizedKeys): string[] {
  const known: unknown = JSON.parse(issue.message);
  return Array.isArray(known) ? known.map(String) : [];
}

function oneOf(words: readonly string[]): string {
  return words.length === 1 ? words.join() : `one of ${words.join(", ")}`;
}

// Why a file could not be read, in words.

const FILE_ERROR_REASONS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist",
  EISDIR: "is a folder",
  EACCES: "may not be read by this user",
  EPERM: "may not be read by this user",
};

export function fileReadProblem(file: string, error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return `${file} ${FILE_ERROR_REASONS[code] ?? `could not be read (${code === "" ? "unknown reason" : code})`}`;
}
