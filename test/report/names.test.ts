import { expect, test } from "vitest";
import { chartLabel, chartLabels, columnsOf, groupHtml, nameHtml, truncatedName } from "../../src/report/html.ts";

const FAMILY = "👨‍👩‍👧‍👦";

test.each([
  ["what fits", "nova-3", 6, "nova-3"],
  ["one column too many", "nova-33", 6, "nova-…"],
  ["no blank before the ellipsis", "nova general", 6, "nova…"],
  ["an empty name", "", 6, ""],
  ["wide characters as two columns", "日本語", 4, "日…"],
  ["emoji of several code points whole", `${FAMILY}${FAMILY}${FAMILY}`, 5, `${FAMILY}${FAMILY}…`],
  ["accents with their letter", "e\u0301e\u0301e\u0301", 2, "e\u0301…"],
  ["a letter under a heap of accents without them", `a${"\u0301".repeat(50)}b`, 6, "ab"],
  ["several lines as one", "a\r\n\tb\u0000c", 9, "a b c"],
  ["marks that turn the direction", "a\u202eb\u2066c", 9, "abc"],
  ["half a character", "a\ud83db", 9, "a\ufffdb"],
  ["500 characters", "x".repeat(500), 10, "xxxxxxxxx…"],
])("shortens %s", (_, name, columns, expected) => {
  expect(truncatedName(name, columns)).toBe(expected);
  expect(columnsOf(truncatedName(name, columns))).toBeLessThanOrEqual(columns);
});

test("names that are cut to the same label stay distinct, and in their order", () => {
  const labels = chartLabels(["model-general-a", "model-general-b", "model-general-b", "model-gen…"], 10);
  expect(labels).toEqual(["model-gen…", "model… (2)", "model… (3)", "model… (4)"]);
});

test("no value and a name that says so stay distinct", () => {
  expect(chartLabels([null, "no value", ""], 12)).toEqual(["no value", "no value (2)", ""]);
});

test.each(["__proto__", "constructor", "hasOwnProperty", "toString"])(
  "%s, which every object has, is never a key of the chart library's",
  (name) => {
    const label = chartLabel(name, 20);
    expect(label in {}).toBe(false);
    expect(label.replace("\u2060", "")).toBe(name);
  },
);

test.each([
  ["a name, isolated", nameHtml("<b>\u202e"), "<bdi>&lt;b&gt;\u202e</bdi>"],
  ["no value", nameHtml(null), "<i>no value</i>"],
  ["a blank name", nameHtml(" \n"), "<i>blank name</i>"],
  [
    "a set of tags, each isolated",
    groupHtml("tags", '["a","<"]'),
    '<span class="tags"><span><bdi>a</bdi></span> <span><bdi>&lt;</bdi></span> </span>',
  ],
  ["no tags", groupHtml("tags", "[]"), "<i>no tags</i>"],
  ["tags that are no list as they are", groupHtml("tags", "{1}"), "<bdi>{1}</bdi>"],
  ["a list of another grouping as it is", groupHtml("model", '["a"]'), "<bdi>[&quot;a&quot;]</bdi>"],
])("shows %s", (_, shown, expected) => {
  expect(String(shown)).toBe(expected);
});
