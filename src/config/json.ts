// Parses JSON and records the position of every value, so that an issue can be found in the file. JSON.parse makes the value. The
// scan is also needed because JSON.parse does not report duplicate names, and its errors quote the file with the keys in it.

import { AppError } from "../errors.ts";
import { ExactNumber } from "../usage/json-value.ts";
import { decimalText } from "../usage/metrics.ts";
import type { Path, Position } from "./messages.ts";

/** A name that occurs twice in one object: JSON.parse would silently take the last. */
export type DuplicateName = { readonly path: Path; readonly firstLine: number };

export type JsonDocument = {
  readonly value: unknown;
  readonly duplicates: readonly DuplicateName[];
  /** The position of the path, or of the nearest object or list around it if the path is not in the file. */
  readonly positionOf: (path: Path) => Position;
};

type Token = { readonly raw: string; readonly at: number };

type Scan = {
  readonly text: string;
  readonly source: string;
  at: number;
  /** From a path, as JSON, to the offset of the field's name or of the list's entry. */
  readonly offsets: Map<string, number>;
  readonly duplicates: DuplicateName[];
  /** The offset at which each line begins, once a position was asked for. */
  lineStarts?: readonly number[];
};

const JSON_DEPTH_MAX = 50;
const SPACE = /[\t\n\r ]*/y;
const TOKEN =
  /[{}[\],:]|"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4})|[\x7f-\x9f])*"|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/uy;

/**
 * Throws one AppError with line and column where the text is not JSON. A byte order mark is accepted. A number that a double can't hold
 * comes back as its text: the fields that take exact numbers take text, too.
 */
export function parseJson(text: string, source: string): JsonDocument {
  const body = text.replace(/^\uFEFF/, "");
  if (body.trim() === "") throw new AppError("config", `${source} is empty: expected an object { … }`);

  const scan: Scan = { text: body, source, at: 0, offsets: new Map(), duplicates: [] };
  scanValue(scan, []);
  const rest = takeToken(scan, "the end of the file");
  if (rest.raw !== "") throw syntaxError(scan, rest.at, "the end of the file");
  return {
    value: JSON.parse(body, keepDigits),
    duplicates: scan.duplicates,
    positionOf: (path) => positionOf(scan, path),
  };
}

function keepDigits(_name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number" || context?.source === undefined) return value;
  const exact = decimalText(new ExactNumber(context.source));
  return exact === decimalText(value) ? value : context.source;
}

function scanValue(scan: Scan, path: Path): void {
  const token = takeToken(scan, "a value");
  if (path.length > JSON_DEPTH_MAX) throw syntaxError(scan, token.at, `at most ${JSON_DEPTH_MAX} levels`);
  if (typeof path.at(-1) !== "string") scan.offsets.set(JSON.stringify(path), token.at);

  if (token.raw === "{") scanMembers(scan, path);
  else if (token.raw === "[") scanEntries(scan, path);
  else if (/^[}\],:]?$/.test(token.raw)) throw syntaxError(scan, token.at, "a value");
}

function scanMembers(scan: Scan, path: Path): void {
  const firstAt = new Map<string, number>();
  if (closes(scan, "}")) return;
  do {
    const token = takeToken(scan, "a name in double quotes");
    if (!token.raw.startsWith('"')) throw syntaxError(scan, token.at, "a name in double quotes");
    const name = String(JSON.parse(token.raw));
    // JSON.parse and plain objects treat this name differently from others.
    if (name === "__proto__") throw syntaxError(scan, token.at, 'a name other than "__proto__"');

    const at = firstAt.get(name);
    if (at === undefined) firstAt.set(name, token.at);
    else scan.duplicates.push({ path: [...path, name], firstLine: positionAt(scan, at).line });
    scan.offsets.set(JSON.stringify([...path, name]), token.at);

    const colon = takeToken(scan, '":"');
    if (colon.raw !== ":") throw syntaxError(scan, colon.at, '":"');
    scanValue(scan, [...path, name]);
  } while (continues(scan, "}"));
}

function scanEntries(scan: Scan, path: Path): void {
  if (closes(scan, "]")) return;
  let index = 0;
  do {
    scanValue(scan, [...path, index]);
    index += 1;
  } while (continues(scan, "]"));
}

function closes(scan: Scan, mark: string): boolean {
  const at = afterSpace(scan);
  if (scan.text.charAt(at) !== mark) return false;
  scan.at = at + mark.length;
  return true;
}

function continues(scan: Scan, mark: string): boolean {
  const expected = `"," or "${mark}"`;
  const token = takeToken(scan, expected);
  if (token.raw !== "," && token.raw !== mark) throw syntaxError(scan, token.at, expected);
  return token.raw === ",";
}

/** The next token, empty at the end of the file. */
function takeToken(scan: Scan, expected: string): Token {
  const at = afterSpace(scan);
  TOKEN.lastIndex = at;
  const raw = TOKEN.exec(scan.text)?.[0] ?? "";
  if (raw === "" && at < scan.text.length) throw syntaxError(scan, at, expected);
  scan.at = at + raw.length;
  return { raw, at };
}

function afterSpace(scan: Scan): number {
  SPACE.lastIndex = scan.at;
  SPACE.exec(scan.text);
  return SPACE.lastIndex;
}

function positionOf(scan: Scan, path: Path): Position {
  const at = scan.offsets.get(JSON.stringify(path));
  if (at !== undefined || path.length === 0) return positionAt(scan, at ?? 0);
  return positionOf(scan, path.slice(0, -1));
}

// Syntax errors: where the text stops being JSON, with hints for the mistakes people make by hand.

/** Shows only one character of the file: it may be the beginning of a key. */
function syntaxError(scan: Scan, at: number, expected: string): AppError {
  const { text, source } = scan;
  const { line, column } = positionAt(scan, at);
  const hint = hintFor(text, at, expected);
  const message = `line ${line}, column ${column}: expected ${expected}, found ${foundAt(text, at)}${hint && `; ${hint}`}`;
  return new AppError("config", `${source} is not JSON: ${message}`, { details: { line, column } });
}

function positionAt(scan: Scan, at: number): Position {
  // Found once: a file of thousands of projects may have thousands of issues.
  scan.lineStarts ??= [0, ...Array.from(scan.text.matchAll(/\n/g), ({ index }) => index + 1)];
  let [line, end] = [0, scan.lineStarts.length];
  while (end - line > 1) {
    const middle = Math.floor((line + end) / 2);
    if ((scan.lineStarts[middle] ?? 0) <= at) line = middle;
    else end = middle;
  }
  return { line: line + 1, column: at - (scan.lineStarts[line] ?? 0) + 1 };
}

function foundAt(text: string, at: number): string {
  const codePoint = text.codePointAt(at);
  return codePoint === undefined ? "the end of the file" : JSON.stringify(String.fromCodePoint(codePoint));
}

function hintFor(text: string, at: number, expected: string): string {
  const found = text.charAt(at);
  if (found === "'") return "strings and names are written in double quotes";
  if (found === "/" || found === "#") return "JSON has no comments: remove it";
  if ((found === "}" || found === "]") && text.slice(0, at).trimEnd().endsWith(","))
    return "remove the comma before it";
  if (found === '"' && isWholeString(text, at)) return expected.startsWith('","') ? "a comma is missing before it" : "";
  if (found === '"')
    return 'this string is not closed on its line, or holds a wrong escape: a backslash is written "\\\\", a line break "\\n"';
  if (/[A-Za-z_]/.test(found))
    return "text is written in double quotes; only numbers, true, false and null are written without";
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
