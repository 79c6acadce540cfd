// Changes the bytes or the structure of an answer at random, in the same way for the same seed. Pure.

import { pick, randomFrom } from "../../src/emulator/usage.ts";
import { HOSTILE_NUMBERS } from "./hostile-numbers.ts";
import { type JsonTree, readTree, writeTree } from "./json-tree.ts";

type Random = () => number;
type Change<T> = (value: T, random: Random) => T;
type Changes<T> = readonly [readonly [name: string, change: Change<T>], ...(readonly [string, Change<T>])[]];

const STRUCTURAL_SHARE = 0.6;

/** The changed answer of case `n`, and a description of the changes. */
export function mutated(body: string, seed: number, n: number): { readonly body: Buffer; readonly how: string } {
  const random = randomFrom("mutation", seed, n);
  const how: string[] = [];
  let tree = readTree(body);
  let bytes: Buffer = Buffer.from(body);
  for (let i = 0; i < 1 + Math.floor(random() * 2); i++) {
    if (tree !== undefined && random() < STRUCTURAL_SHARE) {
      const [name, structural] = pick(STRUCTURAL, random);
      tree = structural(tree, random);
      bytes = Buffer.from(writeTree(tree));
      how.push(name);
    } else {
      const [name, bytewise] = pick(BYTEWISE, random);
      bytes = bytewise(bytes, random);
      tree = undefined;
      how.push(name);
    }
  }
  return { body: bytes, how: how.join(", then ") };
}

const below = (random: Random, end: number) => Math.floor(random() * end);

// Changes of bytes, whatever they mean. The spread of a literal only keeps several texts on one line.

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const;
const HOSTILE_SNIPPETS = [
  ...(["\\ud800", "\u0000", "\u2028", "\u202e", "__proto__", "1e999"] as const),
  ...(['"', "\\", "}", "]", ",", "[]", "null"] as const),
] as const;
const NOT_UTF8 = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xe2, 0x82], BYTE_ORDER_MARK] as const;

const BYTEWISE: Changes<Buffer> = [
  ["a bit flipped", withByte((byte, random) => byte ^ (1 << below(random, 8)))],
  ["a byte replaced", withByte((_, random) => below(random, 256))],
  [
    "a digit replaced",
    (bytes, random) => {
      const digits = [...bytes.keys()].filter((at) => /\d/.test(String.fromCharCode(bytes[at] ?? 0)));
      const at = digits[below(random, digits.length)] ?? 0;
      return Buffer.concat([bytes.subarray(0, at), Buffer.from([0x30 + below(random, 10)]), bytes.subarray(at + 1)]);
    },
  ],
  ["bytes removed", spliced((at, random) => [at, at + 1 + below(random, 8)])],
  ["bytes doubled", spliced((at, random) => [at + 1 + below(random, 60), at])],
  ["hostile text inserted", inserted((random) => Buffer.from(pick(HOSTILE_SNIPPETS, random)))],
  ["bytes that are not UTF-8 inserted", inserted((random) => Buffer.from(pick<readonly number[]>(NOT_UTF8, random)))],
  ["a byte order mark before it", (bytes) => Buffer.concat([Buffer.from(BYTE_ORDER_MARK), bytes])],
  ["space around it", (bytes) => Buffer.concat([Buffer.from("\n\t "), bytes, Buffer.from(" \r\n")])],
  ["something after it", (bytes, random) => Buffer.concat([bytes, Buffer.from(pick(["}", '{"results":[]}'], random))])],
  ["cut", (bytes, random) => bytes.subarray(0, below(random, bytes.length))],
];

function withByte(change: (byte: number, random: Random) => number): Change<Buffer> {
  return (bytes, random) => {
    const changed = Buffer.from(bytes);
    const at = below(random, bytes.length);
    changed[at] = change(changed[at] ?? 0, random);
    return changed;
  };
}

/** Joins the bytes before `end` and those from `beginning` on. This removes bytes, or doubles some if `beginning` comes first. */
function spliced(cut: (at: number, random: Random) => readonly [end: number, beginning: number]): Change<Buffer> {
  return (bytes, random) => {
    const [end, beginning] = cut(below(random, bytes.length), random);
    return Buffer.concat([bytes.subarray(0, end), bytes.subarray(beginning)]);
  };
}

function inserted(make: (random: Random) => Buffer): Change<Buffer> {
  return (bytes, random) => {
    const added = make(random);
    const at = below(random, bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), added, bytes.subarray(at)]);
  };
}

// Changes of the structure, which leave valid JSON. `at` is the position of a random member or element.

const NAMES = [
  ...(["__proto__", "constructor", "toString", "Hours", "hours ", "", "\u0000", "0"] as const),
  ...(["hours", "requests", "grouping", "start", "end", "results", "tags", "model", "models"] as const),
  ...(["accessor", "endpoint", "video_frames", "résumé", "\ud800", "a\u202eb"] as const),
] as const;
const TEXTS = [
  ...(["", " ", "null", "\u0000", "\ud800", "é", "e\u0301", "👩‍👩‍👧", "\u202eabc"] as const),
  ...(["2026-02-30", "0000-01-01", "9999-12-31", "day", "week", "listen", "=1+1", "<script>"] as const),
  ...["x".repeat(5000), "'; drop table usage_export.slice; --", '{"level":30}\n'],
] as const;

const STRUCTURAL: Changes<JsonTree> = [
  ["a member left out", members((all, at) => all.toSpliced(at, 1))],
  [
    "a member twice",
    members((all, at, random) => all.toSpliced(below(random, all.length + 1), 0, ...all.slice(at, at + 1))),
  ],
  ["a member twice, with another value", members((all, at, random) => [...all, [all[at]?.[0] ?? "", anyJson(random)]])],
  [
    "a member renamed",
    members((all, at, random) => all.map(([name, value], i) => [i === at ? pick(NAMES, random) : name, value])),
  ],
  ["a member added", members((all, _, random) => [...all, [pick(NAMES, random), anyJson(random)]])],
  ["members in another order", members((all) => all.toReversed())],
  ["a value of another kind", atRandom(undefined, (_, random) => anyJson(random))],
  ["a hostile number", atRandom("number", (_, random) => hostileNumber(random))],
  ["a hostile text", atRandom("text", (_, random) => hostileText(random))],
  ["a value nested", atRandom(undefined, (value, random) => nested(value, 1 + below(random, 80)))],
  ["an element twice", elements((items, at) => [...items, ...items.slice(at, at + 1)])],
  ["an element left out", elements((items, at) => items.toSpliced(at, 1))],
  ["no elements", elements(() => [])],
  ["elements in another order", elements((items) => items.toReversed())],
];

const hostileNumber = (random: Random): JsonTree => ({ kind: "number", digits: pick(HOSTILE_NUMBERS, random)[0] });
const hostileText = (random: Random): JsonTree => ({ kind: "text", text: pick<string>(TEXTS, random) });

function anyJson(random: Random): JsonTree {
  return pick<JsonTree>(
    [
      { kind: "word", word: "null" },
      { kind: "word", word: "true" },
      hostileNumber(random),
      hostileText(random),
      { kind: "array", items: [hostileText(random), hostileText(random)] },
      { kind: "object", members: [[pick(NAMES, random), { kind: "number", digits: "1" }]] },
      { kind: "array", items: [] },
    ],
    random,
  );
}

function nested(value: JsonTree, levels: number): JsonTree {
  return levels === 0 ? value : { kind: "array", items: [nested(value, levels - 1)] };
}

type Members = Extract<JsonTree, { kind: "object" }>["members"];
type Items = Extract<JsonTree, { kind: "array" }>["items"];

function members(change: (members: Members, at: number, random: Random) => Members): Change<JsonTree> {
  return atRandom("object", (found, random) =>
    found.kind === "object"
      ? { ...found, members: change(found.members, below(random, found.members.length), random) }
      : found,
  );
}

function elements(change: (items: Items, at: number) => Items): Change<JsonTree> {
  return atRandom("array", (found, random) =>
    found.kind === "array" ? { ...found, items: change(found.items, below(random, found.items.length)) } : found,
  );
}

/** Changes one random value of the kind, or of any kind if it is undefined. A tree without such a value stays as it is. */
function atRandom(kind: JsonTree["kind"] | undefined, change: Change<JsonTree>): Change<JsonTree> {
  const fits = (value: JsonTree) => kind === undefined || value.kind === kind;
  const count = (value: JsonTree): number =>
    childrenOf(value).reduce((sum, inner) => sum + count(inner), fits(value) ? 1 : 0);
  return (tree, random) => {
    const chosen = below(random, count(tree));
    let seen = 0;
    const walk = (value: JsonTree): JsonTree => {
      if (fits(value) && seen++ === chosen) return change(value, random);
      if (value.kind === "array") return { ...value, items: value.items.map(walk) };
      if (value.kind !== "object") return value;
      return { ...value, members: value.members.map(([name, inner]) => [name, walk(inner)]) };
    };
    return walk(tree);
  };
}

function childrenOf(tree: JsonTree): readonly JsonTree[] {
  if (tree.kind === "object") return tree.members.map(([, value]) => value);
  return tree.kind === "array" ? tree.items : [];
}
