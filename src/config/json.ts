// Reads JSON in which comments and trailing commas are allowed, and finds the line of each value. JSON.parse takes neither, does not
// report repeated names, and quotes the file in its errors, with the keys in it. Pure.

import { type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import { AppError } from "../errors.ts";
import { decimalText, ExactNumber } from "../usage/json-value.ts";

export type Path = readonly (string | number)[];

/** A name that occurs twice in one object: JSON.parse would silently take the last. */
type DuplicateName = { readonly path: Path; readonly firstLine: number };

export type JsonDocument = {
  /** A number that a double can't hold is its text: the fields that take exact numbers take text, too. */
  readonly value: unknown;
  readonly duplicates: readonly DuplicateName[];
  /** The offset of the path, or of the nearest object or list around it if the path is not in the file. */
  readonly offsetOf: (path: Path) => number;
  /** Counted from 1. */
  readonly lineOf: (offset: number) => number;
};

/** Throws one AppError with line and column where the text is not JSON. */
export function parseJson(text: string, source: string): JsonDocument {
  const body = text.replace(/^\uFEFF/, "");
  if (body.trim() === "") throw new AppError("config", `${source} is empty: expected an object { … }`);
  const errors: ParseError[] = [];
  const root = parseTree(body, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error || !root) throw syntaxError(body, source, error);

  const lineOf = (offset: number) => body.slice(0, offset).split("\n").length;
  const duplicates: DuplicateName[] = [];
  const contentOf = (node: Node, path: Path): unknown => {
    if (node.type === "array") return node.children?.map((child, index) => contentOf(child, [...path, index])) ?? [];
    if (node.type === "number") return exactNumber(node.value, body.slice(node.offset, node.offset + node.length));
    if (node.type !== "object") return node.value;
    const firstAt = new Map<string, number>();
    const fields = membersOf(node).map(({ name, offset, value }) => {
      const at = firstAt.get(name);
      if (at === undefined) firstAt.set(name, offset);
      else duplicates.push({ path: [...path, name], firstLine: lineOf(at) });
      return [name, contentOf(value, [...path, name])] as const;
    });
    return Object.fromEntries(fields);
  };
  return { value: contentOf(root, []), duplicates, offsetOf: (path) => offsetOf(root, root.offset, path), lineOf };
}

function membersOf(node: Node) {
  return (node.children ?? []).flatMap(({ offset, children: [name, value] = [] }) =>
    name && value ? [{ name: String(name.value), offset, value }] : [],
  );
}

function exactNumber(value: number, source: string): number | string {
  return decimalText(new ExactNumber(source)) === decimalText(value) ? value : source;
}

/** Of a repeated name, the last counts. */
function offsetOf(node: Node, at: number, [segment, ...rest]: Path): number {
  const entry = node.type === "array" ? node.children?.[Number(segment)] : undefined;
  if (entry) return offsetOf(entry, entry.offset, rest);
  const member = node.type === "object" ? membersOf(node).findLast(({ name }) => name === segment) : undefined;
  return member ? offsetOf(member.value, member.offset, rest) : at;
}

const STRING = 'a string in double quotes that ends on its line, with a backslash as "\\\\" and a line break as "\\n"';

const EXPECTED: Readonly<Record<string, string>> = {
  InvalidSymbol: "a name or a value",
  PropertyNameExpected: "a name in double quotes",
  ColonExpected: '":"',
  CommaExpected: '","',
  CloseBraceExpected: '"}"',
  CloseBracketExpected: '"]"',
  EndOfFileExpected: "the end of the file",
  UnexpectedEndOfComment: 'a comment that ends with "*/"',
  UnexpectedEndOfString: STRING,
  InvalidUnicode: STRING,
  InvalidEscapeCharacter: STRING,
  InvalidCharacter: STRING,
};

/** Shows only one character of the file: it may be the beginning of a key. */
function syntaxError(text: string, source: string, error: ParseError | undefined): AppError {
  const offset = error?.offset ?? text.length;
  const before = text.slice(0, offset).split("\n");
  const [line, column] = [before.length, (before.at(-1) ?? "").length + 1];
  const codePoint = text.codePointAt(offset);
  const found = codePoint === undefined ? "the end of the file" : JSON.stringify(String.fromCodePoint(codePoint));
  const expected = (error && EXPECTED[printParseErrorCode(error.error)]) ?? "a value";
  const hint = /['A-Za-z_]/.test(text.charAt(offset)) ? "; names and text are written in double quotes" : "";
  const message = `line ${line}, column ${column}: expected ${expected}, found ${found}${hint}`;
  return new AppError("config", `${source} is not JSON: ${message}`, { details: { line, column } });
}
