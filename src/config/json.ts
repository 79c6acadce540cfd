// Reads JSON with comments and trailing commas, and finds the line of each value. JSON.parse would not report repeated names, and its
// errors quote the file, which may hold a key. Pure.

import { findNodeAtLocation, type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import { decimalText, ExactNumber } from "../decimal.ts";
import { AppError } from "../errors.ts";

export type Path = readonly (string | number)[];

export type ConfigIssue = { readonly path: Path; readonly message: string };

export type Report = (path: Path, message: string) => void;

export type JsonDocument = ReturnType<typeof parseJson>;

/** Throws an AppError with the line and column of the first mistake if the text is not JSON. */
export function parseJson(text: string, source: string) {
  const body = text.replace(/^\uFEFF/, "");
  if (body.trim() === "") throw new AppError("config", `${source} is empty: expected an object { … }`);
  const errors: ParseError[] = [];
  const root = parseTree(body, errors, { allowTrailingComma: true });
  if (errors[0] || !root) throw syntaxError(body, source, errors[0]);
  const lineOf = (offset: number) => body.slice(0, offset).split("\n").length;
  const duplicateIssues: ConfigIssue[] = [];
  const contentOf = (node: Node, path: Path): unknown => {
    if (node.type === "array") return node.children?.map((child, index) => contentOf(child, [...path, index])) ?? [];
    if (node.type === "number") {
      // A number that a double can't hold becomes text. Fields for exact numbers accept text.
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
        duplicateIssues.push({ path: at, message });
      }
      fields.set(name, valueNode && contentOf(valueNode, at));
    }
    return Object.fromEntries(fields);
  };
  /** If the path is not in the file, the offset of the nearest object or list around it. */
  const offsetOf = (path: Path): number =>
    findNodeAtLocation(root, [...path])?.offset ?? (path.length === 0 ? 0 : offsetOf(path.slice(0, -1)));
  return { value: contentOf(root, []), duplicateIssues, offsetOf, lineOf };
}

/** Shows only one character of the file, because more of it might reveal a key. */
function syntaxError(text: string, source: string, error: ParseError | undefined): AppError {
  const offset = error?.offset ?? text.length;
  const before = text.slice(0, offset).split("\n");
  const [line, column] = [before.length, (before.at(-1) ?? "").length + 1];
  const [character] = text.slice(offset);
  const found = character === undefined ? "the end of the file" : JSON.stringify(character);
  // The code is a name such as "CommaExpected".
  const code = error ? printParseErrorCode(error.error) : "ValueExpected";
  const problem = code.replaceAll(/\B[A-Z]/g, " $&").toLowerCase();
  const hint = /['A-Za-z_]/.test(text.charAt(offset)) ? "; names and text are written in double quotes" : "";
  const message = `line ${line}, column ${column}: ${problem}, found ${found}${hint}`;
  return new AppError("config", `${source} is not JSON: ${message}`, { details: { line, column } });
}
