// Text to value, with the line of every place, so that a fault can be found in the file. JSON.parse makes the value; the
// scan beside it exists because JSON.parse keeps silent about repeated names, and its errors quote the file, key and all.

import { AppError } from "../errors.ts";
import type { Path, Position } from "./fault.ts";
import { positionAt, syntaxError } from "./syntax-error.ts";

/** A name that stands twice in one object: JSON.parse would take the last without a word. */
export type Repeat = { readonly path: Path; readonly firstLine: number };

export type JsonDocument = {
  readonly value: unknown;
  readonly repeats: readonly Repeat[];
  /** Where the place stands; where what would hold it stands, if it is not in the file. */
  readonly positionOf: (path: Path) => Position;
};

type Token = { readonly raw: string; readonly at: number };

type Scan = {
  readonly text: string;
  readonly source: string;
  at: number;
  /** Path as JSON to the offset of the field's name or the list's entry. */
  readonly offsets: Map<string, number>;
  readonly repeats: Repeat[];
};

const DEPTH_MAX = 50;
const SPACE = /[\t\n\r ]*/y;
const TOKEN =
  /[{}[\],:]|"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4})|[\x7f-\x9f])*"|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/uy;

/** Throws one AppError with line and column where the text is not JSON. A byte order mark before it is no fault. */
export function parseJson(text: string, source: string): JsonDocument {
  const body = text.replace(/^\uFEFF/, "");
  if (body.trim() === "") throw new AppError("config", `${source} is empty: expected an object { … }`);

  const scan: Scan = { text: body, source, at: 0, offsets: new Map(), repeats: [] };
  scanValue(scan, []);
  const rest = take(scan, "the end of the file");
  if (rest.raw !== "") throw syntaxError(scan, rest.at, "the end of the file");
  return { value: JSON.parse(body), repeats: scan.repeats, positionOf: (path) => positionOf(scan, path) };
}

function scanValue(scan: Scan, path: Path): void {
  const token = take(scan, "a value");
  if (path.length > DEPTH_MAX) throw syntaxError(scan, token.at, `at most ${DEPTH_MAX} levels`);
  if (typeof path.at(-1) !== "string") scan.offsets.set(JSON.stringify(path), token.at);

  if (token.raw === "{") scanMembers(scan, path);
  else if (token.raw === "[") scanEntries(scan, path);
  else if (/^[}\],:]?$/.test(token.raw)) throw syntaxError(scan, token.at, "a value");
}

function scanMembers(scan: Scan, path: Path): void {
  const firstAt = new Map<string, number>();
  if (closes(scan, "}")) return;
  do {
    const token = take(scan, "a name in double quotes");
    if (!token.raw.startsWith('"')) throw syntaxError(scan, token.at, "a name in double quotes");
    const name = String(JSON.parse(token.raw));
    // Neither JSON.parse nor a plain object treats this name as the others.
    if (name === "__proto__") throw syntaxError(scan, token.at, 'a name other than "__proto__"');

    const at = firstAt.get(name);
    if (at === undefined) firstAt.set(name, token.at);
    else scan.repeats.push({ path: [...path, name], firstLine: positionAt(scan.text, at).line });
    scan.offsets.set(JSON.stringify([...path, name]), token.at);

    const colon = take(scan, '":"');
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
  const token = take(scan, expected);
  if (token.raw !== "," && token.raw !== mark) throw syntaxError(scan, token.at, expected);
  return token.raw === ",";
}

/** The next token, empty at the end of the file. */
function take(scan: Scan, expected: string): Token {
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
  if (at !== undefined || path.length === 0) return positionAt(scan.text, at ?? 0);
  return positionOf(scan, path.slice(0, -1));
}
