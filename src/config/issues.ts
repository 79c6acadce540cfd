// What zod found, as faults in our words. Its own texts name no field that would be right, and its unions name every branch.

import type { z } from "zod";
import { came, type Fault, isAboutKey, type Path } from "./fault.ts";
import { didYouMean } from "./near-miss.ts";

type Issue = z.core.$ZodIssue;

/** What is expected where the shape has no words of its own. */
export function defaultExpectation(issue: z.core.$ZodRawIssue): string {
  if (issue.code === "invalid_value") return oneOf(issue.values.map((value) => JSON.stringify(value)));
  if (issue.code === "too_small") return "at least one entry";
  return issue.code === "invalid_type" ? (KINDS[issue.expected] ?? issue.expected) : issue.code;
}

const KINDS: Readonly<Record<string, string>> = {
  array: "a list [ … ]",
  boolean: "true or false",
  object: "an object { … }",
  record: "an object { … }",
  string: "a string",
};

/** `messages` of the issues must be expectations: see fields.ts. */
export function faultsOf(issues: readonly Issue[], base: Path = []): Fault[] {
  return issues.flatMap((issue) => faultsOfIssue(issue, [...base, ...issue.path.map(segmentOf)]));
}

function segmentOf(segment: PropertyKey): string | number {
  return typeof segment === "number" ? segment : String(segment);
}

function faultsOfIssue(issue: Issue, path: Path): Fault[] {
  switch (issue.code) {
    case "custom":
      return [{ path, message: issue.message }];
    case "unrecognized_keys":
      return issue.keys.map((name) => ({
        path: [...path, name],
        message: unknownField([...path, name], knownFields(issue)),
      }));
    case "invalid_key":
      return faultsOf(issue.issues, path);
    case "invalid_union":
      return unionFaults(issue, path);
    default:
      return [{ path, message: unexpected(issue, path) }];
  }
}

/** The one form of an alternative that was meant, where that is clear; else all of them. */
function unionFaults(issue: z.core.$ZodIssueInvalidUnion, path: Path): Fault[] {
  // The input is a text and one of several words was expected: only those words are reported, even if the union also allows other
  // types.
  const words = issue.errors.find(([inner]) => typeof issue.input === "string" && inner?.code === "invalid_value");
  if (words) return faultsOf(words, path);
  const forms = issue.errors.map((form) => faultsOf(form, path)).sort((a, b) => a.length - b.length);
  const [nearest, second] = forms;
  if (nearest && second && nearest.length < second.length) return nearest;

  const unknown = issue.errors.flat().filter((inner) => inner.code === "unrecognized_keys");
  const known = unknown.flatMap(knownFields);
  const names = new Set(unknown.flatMap((inner) => inner.keys).filter((name) => !known.includes(name)));
  const guesses = [...names].map((name) => didYouMean(name, known));
  return [{ path, message: `${unexpected(issue, path)}${guesses.join("")}` }];
}

function unexpected(issue: Issue, path: Path): string {
  const { input, message } = issue;
  if (input === undefined) return `missing; expected ${message}`;
  const guess =
    issue.code === "invalid_value" && typeof input === "string" ? didYouMean(input, issue.values.map(String)) : "";
  return `expected ${message}; got ${came(path, input)}${guess}`;
}

function unknownField(path: Path, known: readonly string[]): string {
  const name = String(path.at(-1));
  const guess = didYouMean(name, known);
  if (guess !== "") return `unknown field${guess}`;
  const fields = `unknown field; expected ${oneOf(known.map((field) => JSON.stringify(field)))}`;
  if (!isAboutKey(path) && !/key|token|secret|password/i.test(name)) return fields;
  return `${fields}; a key itself never stands in this file: a project has "key": { "env": "NAME" }`;
}

function knownFields(issue: z.core.$ZodIssueUnrecognizedKeys): string[] {
  const known: unknown = JSON.parse(issue.message);
  return Array.isArray(known) ? known.map(String) : [];
}

function oneOf(words: readonly string[]): string {
  return words.length === 1 ? words.join() : `one of ${words.join(", ")}`;
}
