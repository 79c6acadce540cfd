// Ways to change the structure of an answer, which stays JSON. Pure.

import { pick } from "../../src/emulator/usage.ts";
import { HOSTILE_NUMBERS } from "./hostile-numbers.ts";
import type { JsonTree } from "./json-tree.ts";

type Random = () => number;

const below = (random: Random, end: number) => Math.floor(random() * end);

const NAMES = [
  "__proto__",
  "constructor",
  "toString",
  "hours",
  "requests",
  "grouping",
  "start",
  "end",
  "results",
  "tags",
  "model",
  "models",
  "accessor",
  "endpoint",
  "Hours",
  "hours ",
  "",
  "\u0000",
  "0",
  "video_frames",
  "résumé",
  "\ud800",
  "a\u202eb",
] as const;
const TEXTS = [
  "",
  " ",
  "null",
  "\u0000",
  "\ud800",
  "é",
  "e\u0301",
  "👩‍👩‍👧",
  "\u202eabc",
  "2026-02-30",
  "0000-01-01",
  "9999-12-31",
  "day",
  "week",
  "listen",
  "x".repeat(5000),
  "'; drop table usage_export.slice; --",
  '{"level":30}\n',
  "=1+1",
  "<script>",
] as const;

type Structural = readonly [name: string, change: (tree: JsonTree, random: Random) => JsonTree];
export const STRUCTURAL: readonly [Structural, ...Structural[]] = [
  ["a member left out", (tree, random) => inObject(tree, random, (members, at) => members.toSpliced(at, 1))],
  [
    "a member twice",
    (tree, random) =>
      inObject(tree, random, (members, at) =>
        members.toSpliced(below(random, members.length + 1), 0, ...members.slice(at, at + 1)),
      ),
  ],
  [
    "a member twice, with another value",
    (tree, random) =>
      inObject(tree, random, (members, at) => [...members, [members[at]?.[0] ?? "", madeUp(random)] as const]),
  ],
  [
    "a member renamed",
    (tree, random) =>
      inObject(tree, random, (members, at) =>
        members.map(([name, value], i) => [i === at ? pick(NAMES, random) : name, value] as const),
      ),
  ],
  [
    "a member added",
    (tree, random) => inObject(tree, random, (members) => [...members, [pick(NAMES, random), madeUp(random)] as const]),
  ],
  ["members in another order", (tree, random) => inObject(tree, random, (members) => members.toReversed())],
  [
    "a value of another kind",
    (tree, random) =>
      atRandom(
        tree,
        random,
        () => true,
        () => madeUp(random),
      ),
  ],
  [
    "a hostile number",
    (tree, random) =>
      atRandom(
        tree,
        random,
        ({ kind }) => kind === "number",
        () => ({ kind: "number", digits: pick(HOSTILE_NUMBERS, random)[0] }),
      ),
  ],
  [
    "a hostile text",
    (tree, random) =>
      atRandom(
        tree,
        random,
        ({ kind }) => kind === "text",
        () => ({ kind: "text", text: pick(TEXTS, random) }),
      ),
  ],
  [
    "a value nested",
    (tree, random) =>
      atRandom(
        tree,
        random,
        () => true,
        (value) => nested(value, 1 + below(random, 80)),
      ),
  ],
  ["an element twice", (tree, random) => inArray(tree, random, (items, at) => [...items, ...items.slice(at, at + 1)])],
  ["an element left out", (tree, random) => inArray(tree, random, (items, at) => items.toSpliced(at, 1))],
  ["no elements", (tree, random) => inArray(tree, random, () => [])],
  ["elements in another order", (tree, random) => inArray(tree, random, (items) => items.toReversed())],
];

function madeUp(random: Random): JsonTree {
  const choices: readonly [JsonTree, ...JsonTree[]] = [
    { kind: "word", word: "null" },
    { kind: "word", word: "true" },
    { kind: "number", digits: pick(HOSTILE_NUMBERS, random)[0] },
    { kind: "text", text: pick(TEXTS, random) },
    {
      kind: "array",
      items: [
        { kind: "text", text: pick(TEXTS, random) },
        { kind: "text", text: pick(TEXTS, random) },
      ],
    },
    { kind: "object", members: [[pick(NAMES, random), { kind: "number", digits: "1" }]] },
    { kind: "array", items: [] },
  ];
  return pick(choices, random);
}

function nested(value: JsonTree, levels: number): JsonTree {
  let around = value;
  for (let level = 0; level < levels; level++) around = { kind: "array", items: [around] };
  return around;
}

type Members = Extract<JsonTree, { kind: "object" }>["members"];

function inObject(tree: JsonTree, random: Random, change: (members: Members, at: number) => Members): JsonTree {
  return atRandom(
    tree,
    random,
    ({ kind }) => kind === "object",
    (found) =>
      found.kind === "object"
        ? { kind: "object", members: change(found.members, below(random, found.members.length)) }
        : found,
  );
}

function inArray(
  tree: JsonTree,
  random: Random,
  change: (items: readonly JsonTree[], at: number) => readonly JsonTree[],
): JsonTree {
  return atRandom(
    tree,
    random,
    ({ kind }) => kind === "array",
    (found) =>
      found.kind === "array" ? { kind: "array", items: change(found.items, below(random, found.items.length)) } : found,
  );
}

/** Changes one value of the tree, chosen at random among those that fit. */
function atRandom(
  tree: JsonTree,
  random: Random,
  fits: (value: JsonTree) => boolean,
  change: (value: JsonTree) => JsonTree,
): JsonTree {
  const chosen = below(random, count(tree, fits));
  let seen = 0;
  const walk = (value: JsonTree): JsonTree => {
    if (fits(value) && seen++ === chosen) return change(value);
    if (value.kind === "object")
      return { kind: "object", members: value.members.map(([name, inner]) => [name, walk(inner)] as const) };
    return value.kind === "array" ? { kind: "array", items: value.items.map(walk) } : value;
  };
  return walk(tree);
}

function count(tree: JsonTree, fits: (value: JsonTree) => boolean): number {
  const inner =
    tree.kind === "object" ? tree.members.map(([, value]) => value) : tree.kind === "array" ? tree.items : [];
  return (fits(tree) ? 1 : 0) + inner.reduce((sum, value) => sum + count(value, fits), 0);
}
