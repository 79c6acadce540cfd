// Texts that stand for several projects: patterns of names, in which * is any text, and placeholders such as "{id}" in paths and
// commands. Pure.

import { AppError } from "../errors.ts";
import { describeValue, didYouMean } from "./messages.ts";

export function isPattern(text: string): boolean {
  return text.includes("*");
}

/** Whether the whole text fits. The time it takes does not grow with the number of stars, as that of a regular expression may. */
export function matchesPattern(pattern: string, text: string): boolean {
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop();
  if (last === undefined) return text === pattern;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of others) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= text.length - last.length;
}

type NamedProject = { readonly id: string; readonly name: string; readonly isDiscovered?: true };

/**
 * The projects with these names, and those that a pattern among them fits, each once. A discovered project may have any name, also one like
 * a pattern: it is found by patterns alone, so that no name at the service takes a pattern away from the other projects.
 */
export function projectsNamed(
  projects: readonly NamedProject[],
  names: readonly string[],
): { readonly id: string; readonly name: string }[] {
  const byName = new Map(
    projects.filter(({ isDiscovered }) => !isDiscovered).map((project) => [project.name, project]),
  );
  const named = names.flatMap((name) => {
    const exact = byName.get(name);
    if (exact || !isPattern(name)) return exact ?? [];
    return projects.filter((project) => matchesPattern(name, project.name));
  });
  return [...new Map(named.map(({ id, name }) => [id, { id, name }])).values()];
}

// Placeholders: what is put in is the id or the name of a project.

/** What is put in, by the word between the braces. */
export type Values = Readonly<Record<string, string>>;

const PLACEHOLDER = /\{([A-Za-z]+)\}/g;

/**
 * What may become a part of a path or of an argument. Without a slash or backslash it can't lead to another folder; without a dot at its
 * beginning it is neither ".." nor hidden; without "-" there no command takes it for an option.
 */
const SAFE_VALUE = /^[\p{L}\p{N}_][\p{L}\p{M}\p{N} ._-]*$/u;

function wordsIn(text: string): readonly string[] {
  return [...text.matchAll(PLACEHOLDER)].map(([, word = ""]) => word);
}

export function hasPlaceholder(text: string): boolean {
  return wordsIn(text).length > 0;
}

/** What is wrong with the text itself: a placeholder that is not among `known`. */
export function placeholderProblem(text: string, known: readonly string[]): string | undefined {
  const unknown = wordsIn(text).find((word) => !known.includes(word));
  if (unknown === undefined) return undefined;
  const braces = (words: readonly string[]) => words.map((word) => `{${word}}`);
  return `{${unknown}} is none of ${braces(known).join(" and ")}${didYouMean(`{${unknown}}`, braces(known))}`;
}

/** Why the text can't be filled for a project; undefined if it can. */
export function fillProblem(text: string, values: Values): string | undefined {
  const word = wordsIn(text).find((one) => !SAFE_VALUE.test(values[one] ?? ""));
  if (word === undefined) return undefined;
  return `{${word}} can't stand for ${describeValue(values[word] ?? "")}: only letters, digits, spaces, ".", "_" and "-" are put into a path or a command, and no "." or "-" at the beginning; use {id}, or rename the project`;
}

/** Throws `config` where `fillProblem` finds something. */
export function fill(text: string, values: Values): string {
  const problem = fillProblem(text, values);
  if (problem !== undefined) throw new AppError("config", problem);
  return text.replaceAll(PLACEHOLDER, (_, word: string) => values[word] ?? "");
}
