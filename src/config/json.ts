// Reads JSON with comments and trailing commas, and finds the line of each value. JSON.parse takes neither, does not report repeated names,
// and quotes the file in its errors, with the keys in it. Pure.

import { findNodeAtLocation, type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import { decimalText, ExactNumber } from "../decimal.ts";
import { AppError } from "../errors.ts";

export type Path = readonly (string | number)[];

/** What is wrong at a place of the file. */
export type ConfigIssue = { readonly path: Path; readonly message: string };

export type Report = (path: Path, message: string) => void;

export type JsonDocument = {
  /** A number that a double can't hold exactly is given as text: fields for exact numbers take both. */
  readonly value: unknown;
  /** Names that occur twice in one object: JSON.parse would silently take the last. */
  readonly duplicates: readonly ConfigIssue[];
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
  const duplicates: ConfigIssue[] = [];
  const contentOf = (node: Node, path: Path): unknown => {
    if (node.type === "array") return node.children?.map((child, index) => contentOf(child, [...path, index])) ?? [];
    if (node.type === "number") {
      const digits = body.slice(node.offset, node.offset + node.length);
      return decimalText(new ExactNumber(digits)) === decimalText(node.value) ? node.value : digits;
    }
    if (node.type !== "object") return node.value;
    const fields = new Map<string, unknown>();
    for (const { offset, children: [nameNode, valueNode] = [] } of node.children ?? []) {
      const name = String(nameNode?.value);
      const at = [...path, name];
      if (fields.has(name)) {
        const message = `is given twice, again in line ${lineOf(offset)}, and only the second would count; remove one of them`;
        duplicates.push({ path: at, message });
      }
      fields.set(name, valueNode && contentOf(valueNode, at));
    }
    return Object.fromEntries(fields);
  };
  const offsetOf = (path: Path): number =>
    findNodeAtLocation(root, [...path])?.offset ?? (path.length === 0 ? 0 : offsetOf(path.slice(0, -1)));
  return { value: contentOf(root, []), duplicates, offsetOf, lineOf };
}

/** Shows only one character of the file: it may be the beginning of a key. */
function syntaxError(text: string, source: string, error: ParseError | undefined): AppError {
  const offset = error?.offset ?? text.length;
  const before = text.slice(0, offset).split("\n");
  const [line, column] = [before.length, (before.at(-1) ?? "").length + 1];
  const codePoint = text.codePointAt(offset);
  const found = codePoint === undefined ? "the end of the file" : JSON.stringify(String.fromCodePoint(codePoint));
  // The code is a name such as "CommaExpected".
  const code = error ? printParseErrorCode(error.error) : "ValueExpected";
  const problem = code.replaceAll(/\B[A-Z]/g, " $&").toLowerCase();
  const hint = /['A-Za-z_]/.test(text.charAt(offset)) ? "; names and text are written in double quotes" : "";
  const message = `line ${line}, column ${column}: ${problem}, found ${found}${hint}`;
  return new AppError("config", `${source} is not JSON: ${message}`, { details: { line, column } });
}
