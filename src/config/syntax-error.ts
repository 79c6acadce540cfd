// Says where a text stops being JSON, and how to mend it, for the mistakes people make by hand.

import { AppError } from "../errors.ts";
import type { Position } from "./fault.ts";

type Source = { readonly text: string; readonly source: string };

/** One character of the file is shown and no more: what stands there may be the beginning of a key. */
export function syntaxError({ text, source }: Source, at: number, expected: string): AppError {
  const { line, column } = positionAt(text, at);
  const mend = mendOf(text, at, expected);
  return new AppError(
    "config",
    `${source} is not JSON: line ${line}, column ${column}: expected ${expected}, found ${foundAt(text, at)}${mend && `; ${mend}`}`,
    { details: { line, column } },
  );
}

export function positionAt(text: string, at: number): Position {
  const lines = text.slice(0, at).split("\n");
  return { line: lines.length, column: (lines.at(-1) ?? "").length + 1 };
}

function foundAt(text: string, at: number): string {
  const codePoint = text.codePointAt(at);
  return codePoint === undefined ? "the end of the file" : JSON.stringify(String.fromCodePoint(codePoint));
}

function mendOf(text: string, at: number, expected: string): string {
  const found = text.charAt(at);
  if (found === "'") return "strings and names stand in double quotes";
  if (found === "/" || found === "#") return "JSON has no comments: remove it";
  if ((found === "}" || found === "]") && text.slice(0, at).trimEnd().endsWith(","))
    return "remove the comma before it";
  if (found === '"' && isWholeString(text, at)) return expected.startsWith('","') ? "a comma is missing before it" : "";
  if (found === '"')
    return 'this string is not closed on its line, or holds a wrong escape: a backslash is written "\\\\", a line break "\\n"';
  if (/[A-Za-z_]/.test(found)) return "text stands in double quotes; bare are only numbers, true, false and null";
  return "";
}

function isWholeString(text: string, at: number): boolean {
  const line = text.slice(at).split("\n", 1)[0] ?? "";
  const string = /^"(?:[^"\\]|\\.)*"/.exec(line)?.[0];
  try {
    return string !== undefined && typeof JSON.parse(string) === "string";
  } catch {
    return false;
  }
}
