// JSON as a tree that keeps the order of members, repeated members, and the digits of numbers. Pure.

import { type Node, parseTree } from "jsonc-parser";

export type JsonTree =
  | { readonly kind: "object"; readonly members: readonly (readonly [name: string, value: JsonTree])[] }
  | { readonly kind: "array"; readonly items: readonly JsonTree[] }
  | { readonly kind: "number"; readonly digits: string }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "word"; readonly word: "true" | "false" | "null" };

/** Undefined if the text is not JSON, or is nested too deeply for the stack. */
export function readTree(text: string): JsonTree | undefined {
  try {
    JSON.parse(text);
    const root = parseTree(text);
    return root && treeOf(root, text);
  } catch {
    return undefined;
  }
}

function treeOf({ type, offset, length, value, children = [] }: Node, text: string): JsonTree {
  switch (type) {
    case "object":
      return {
        kind: "object",
        members: children.flatMap(({ children: [name, inner] = [] }) =>
          name && inner ? [[String(name.value), treeOf(inner, text)] as const] : [],
        ),
      };
    case "array":
      return { kind: "array", items: children.map((item) => treeOf(item, text)) };
    case "number":
      return { kind: "number", digits: text.slice(offset, offset + length) };
    case "string":
      return { kind: "text", text: value };
    default:
      return { kind: "word", word: `${value}` as "true" | "false" | "null" };
  }
}

export function writeTree(tree: JsonTree): string {
  switch (tree.kind) {
    case "object":
      return `{${tree.members.map(([name, value]) => `${JSON.stringify(name)}:${writeTree(value)}`).join(",")}}`;
    case "array":
      return `[${tree.items.map(writeTree).join(",")}]`;
    case "number":
      return tree.digits;
    case "text":
      return JSON.stringify(tree.text);
    case "word":
      return tree.word;
  }
}

/** The member of that name, the last one as with JSON.parse. An answer that repeats a name is refused by `isStorable`. */
export function memberOf(tree: JsonTree, name: string): JsonTree | undefined {
  return tree.kind === "object" ? tree.members.findLast(([key]) => key === name)?.[1] : undefined;
}

export function isNullish(tree: JsonTree | undefined): boolean {
  return tree === undefined || (tree.kind === "word" && tree.word === "null");
}

/** Equal numbers give equal texts; undefined if a double can't hold the number, or it has more digits than an amount may have. */
export function plainDecimal(digits: string, lengthMax = 400): string | undefined {
  if (!Number.isFinite(Number(digits))) return undefined;
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(digits) ?? [];
  const decimals = fraction.length - Number(exponent);
  if (whole.length + fraction.length > lengthMax || Math.abs(whole.length + Number(exponent)) > lengthMax)
    return undefined;
  const amount = BigInt(whole + fraction);
  if (amount === 0n) return "0";
  if (decimals <= 0) return `${sign}${amount * 10n ** BigInt(-decimals)}`;
  const padded = String(amount).padStart(decimals + 1, "0");
  const text = `${padded.slice(0, -decimals)}.${padded.slice(-decimals)}`.replace(/\.?0+$/, "");
  return sign + text;
}
