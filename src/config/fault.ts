// What is wrong at one place of the configuration, and the one error that names all of it. A value is shown only where it
// can't be a key.

import { AppError } from "../errors.ts";

export type Path = readonly (string | number)[];

/** Both counted from 1. */
export type Position = { readonly line: number; readonly column: number };

export type Fault = { readonly path: Path; readonly message: string };

const SHOWN_LENGTH_MAX = 60;
const NAMES_SHOWN_MAX = 5;

/** A long run of letters and digits, mixed: so look keys, and no name that a person gives. */
const KEY_LIKE = /(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{20,}/;
export const SCHEME_AND_KEY = /^\s*(token|bearer|basic)\s/i;

export function isKeyLike(text: string): boolean {
  return KEY_LIKE.test(text) || SCHEME_AND_KEY.test(text);
}

/** `exports[0].groupings[2]` */
export function placeOf(path: Path): string {
  if (path.length === 0) return "the top level";
  return path.map(segmentOf).join("").replace(/^\./, "");
}

function segmentOf(segment: string | number): string {
  if (typeof segment === "number") return `[${segment}]`;
  return /^[$\w]+$/.test(segment) && !isKeyLike(segment) ? `.${segment}` : `[${shown(segment)}]`;
}

/** What came, for a message. */
export function came(path: Path, value: unknown): string {
  return isAboutKey(path) || isAboutSecret(path) ? `${kindOf(value)}, not shown here` : shown(value);
}

/** An address in `notify`, a token or password in `monitor.access`: what stands in their place may be the secret itself. */
function isAboutSecret(path: Path): boolean {
  return path[0] === "notify" || (path[0] === "monitor" && path[1] === "access");
}

/** Nothing of a project's `key` is repeated: what stands there may be the key itself. */
export function isAboutKey(path: Path): boolean {
  return path[0] === "projects" && path[2] === "key";
}

/** A value shortened, and never what looks like a key. */
export function shown(value: unknown): string {
  if (typeof value === "string") return shownText(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return kindOf(value);
  const names = Object.keys(value).slice(0, NAMES_SHOWN_MAX).map(shownText);
  return names.length === 0 ? "an empty object" : `an object with ${names.join(", ")}`;
}

function shownText(text: string): string {
  if (isKeyLike(text)) return "a string that is not shown: it looks like a key";
  return JSON.stringify(text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Each fault is a line, in the order of the file. The same place and words from two checks are one fault. */
export function faultsError(source: string, faults: readonly Fault[], positionOf: (path: Path) => Position): AppError {
  const lines = faults
    .map((fault) => ({ ...fault, position: positionOf(fault.path) }))
    .sort((a, b) => a.position.line - b.position.line || a.position.column - b.position.column)
    .map(({ path, position, message }) => `- ${placeOf(path)} (line ${position.line}): ${message}`);
  const different = [...new Set(lines)];
  const count = different.length === 1 ? "1 fault" : `${different.length} faults`;
  return new AppError("config", [`${source} has ${count}:`, ...different].join("\n"));
}
