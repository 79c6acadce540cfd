import { expect, test } from "vitest";
import { reasonSentences } from "../../src/show/changes.ts";
import { groupHtml, nameHtml, truncatedName } from "../../src/show/html.ts";
import { makeAnswer, NOTHING_LACKING } from "../facts/sample-facts.ts";

const FAMILY = "👨‍👩‍👧‍👦";

test.each([
  ["a name that fits is unchanged", "nova-3", 6, "nova-3"],
  ["a name one character too long gets an ellipsis", "nova-33", 6, "nova-…"],
  ["no blank stays before the ellipsis", "nova general", 6, "nova…"],
  ["an empty name stays empty", "", 6, ""],
  ["an emoji of several code points stays whole", `${FAMILY}${FAMILY}${FAMILY}${FAMILY}`, 3, `${FAMILY}${FAMILY}…`],
  ["an accent stays with its letter", "e\u0301e\u0301e\u0301", 2, "e\u0301…"],
  ["several lines become one", "a\r\n\tb\u0000c", 9, "a b c"],
  ["characters that change the direction of text are removed", "a\u202eb\u2066c", 9, "abc"],
  ["a lone surrogate is replaced", "a\ud83db", 9, "a\ufffdb"],
  ["500 characters are cut", "x".repeat(500), 10, "xxxxxxxxx…"],
])("in a label %s", (_, name, charactersMax, expected) => {
  expect(truncatedName(name, charactersMax)).toBe(expected);
});

const chips = (...names: readonly string[]) =>
  `<span class="chips">${names.map((name) => `<span><bdi>${name}</bdi></span> `).join("")}</span>`;

test.each([
  ["a name isolated from the text direction around it", () => nameHtml("<b>\u202e"), "<bdi>&lt;b&gt;\u202e</bdi>"],
  ['a missing value as "no value"', () => nameHtml(null), "<i>no value</i>"],
  ['a blank name as "blank name"', () => nameHtml(" \n"), "<i>blank name</i>"],
  ["a set of tags, each isolated", () => groupHtml("tags", '["a","<"]'), chips("a", "&lt;")],
  ['an empty set of tags as "no tags"', () => groupHtml("tags", "[]"), "<i>no tags</i>"],
  ["tags that are not a list unchanged", () => groupHtml("tags", "{1}"), "<bdi>{1}</bdi>"],
  ["a set of models, each isolated", () => groupHtml("model", '["a"]'), chips("a")],
  ["a list in another grouping unchanged", () => groupHtml("accessor", '["a"]'), "<bdi>[&quot;a&quot;]</bdi>"],
])("a table shows %s", (_, shown, expected) => {
  expect(String(shown())).toBe(expected);
});

test("among the reasons of a change, long names that begin alike differ", () => {
  const part = { part: "group", label: null, status: "changed", groups: 1 } as const;
  const amounts = { before: "1", after: "6", change: "5" };
  const name = "Customer Experience Analytics – Transcription (region";
  const parts = [1, 2].map((n) => ({ ...part, ...amounts, group: `${name} ${n})` }));
  const splits = [{ grouping: "project" as const, lacking: NOTHING_LACKING, parts }];
  expect(reasonSentences({ answer: makeAnswer(), splits })).toEqual([
    "By project: … (region 1) +5 hours, … (region 2) +5 hours.",
  ]);
});
