// Placeholders in paths and commands, such as "{id}": they stand for a project, so that one entry serves many projects. Pure.

import { AppError } from "../errors.ts";
import { describeValue } from "./messages.ts";
import { didYouMean } from "./suggestions.ts";

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
