import { expect, test } from "vitest";
import {
  choiceList,
  folded,
  foldedText,
  groupHtml,
  groupText,
  type HtmlValue,
  html,
  instantHtml,
  nameHtml,
  optionHtml,
  shortName,
  stateHtml,
  table,
  trustedHtml,
} from "../../src/show/html.ts";
import { reasonSentences } from "../../src/show/sentences.ts";
import { makeAnswer, NOTHING_LACKING } from "../facts/sample-facts.ts";

test.each<[string, HtmlValue, string]>([
  ["markup, escaped", "<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"],
  ["quotes, escaped because they would end an attribute", `" onload='x'`, "&quot; onload=&#39;x&#39;"],
  ["an entity, escaped so that it is shown as it was written", "&lt;", "&amp;lt;"],
  ["nothing for undefined", undefined, ""],
  ["nothing for false", false, ""],
  ["a number", 7, "7"],
  ["an empty text", "", ""],
  ["HTML, unchanged", html`<b>${"<"}</b>`, "<b>&lt;</b>"],
  ["trusted HTML, unchanged", trustedHtml("<br>"), "<br>"],
  ["the values of a list, one after the other", ["<", [html`<i></i>`, undefined]], "&lt;<i></i>"],
  [
    "replacement characters for control characters, which HTML can't contain",
    "a\0b\u001bc\u0085",
    "a\ufffdb\ufffdc\ufffd",
  ],
  ["a tab and a new line", "a\tb\nc", "a\tb\nc"],
  ["a replacement character for a carriage return, which a browser would change", "a\rb", "a\ufffdb"],
  ["a replacement character for a lone surrogate", "\ud83d and \ude00", "\ufffd and \ufffd"],
  ["a surrogate pair, unchanged", "😀 \u202e", "😀 \u202e"],
])("a template inserts %s", (_, filling, expected) => {
  expect(String(html`[${filling}]`)).toBe(`[${expected}]`);
});

test("the text around inserted values is unchanged", () => {
  expect(String(html`<p class="a">${1}<br>${2}</p>`)).toBe(`<p class="a">1<br>2</p>`);
});

test("a table has headings for its columns and rows, aligned numbers and a foot for its totals", () => {
  const titles = ["Model", { numbers: "Hours" }];
  const text = String(table("Usage", titles, [["nova-3", 7]], [["all", 9]]));
  expect(text).toContain('<tr><th scope="col">Model</th><th scope="col" class="n">Hours</th></tr>');
  const row = (name: string, hours: number) => `<tr><th scope="row">${name}</th><td class="n">${hours}</td></tr>\n`;
  expect(text).toContain(`<tbody>\n${row("nova-3", 7)}</tbody><tfoot>${row("all", 9)}</tfoot>\n</table>`);
  expect(String(table("Usage", titles, []))).not.toContain("tfoot");
});

const LONG = "x".repeat(121);

// Functions, so that each is called in its own test: mutation testing records which test runs which code.
test.each<[string, () => HtmlValue, string]>([
  ["no text as nothing", () => foldedText(null), ""],
  ["an empty text as nothing", () => foldedText(""), ""],
  ["a short text whole", () => foldedText(LONG.slice(1)), `<bdi>${LONG.slice(1)}</bdi>`],
  [
    "a long text folded",
    () => foldedText(LONG),
    `<details><summary><bdi>${"x".repeat(119)}…</bdi></summary><bdi>${LONG}</bdi></details>`,
  ],
  [
    "what is folded under its summary",
    () => folded("a < b", html`<b></b>`),
    "<details>\n<summary>a &lt; b</summary>\n<b></b></details>\n",
  ],
  [
    "a moment to the minute",
    () => instantHtml(new Date(5e11)),
    '<time datetime="1985-11-05T00:53:20.000Z">1985-11-05 00:53</time>',
  ],
  ["a state in its colour", () => stateHtml("failed"), '<span class="state bad">failed</span>'],
  ["a state without a colour", () => stateHtml("pending"), '<span class="state ">pending</span>'],
  ["an option", () => optionHtml("a", "A", false), '<option value="a">A</option>'],
  ["the chosen option", () => optionHtml("a", "A", true), '<option value="a" selected>A</option>'],
  [
    "links, of which one is current",
    () =>
      choiceList("By", [
        ["Day", "?d", false],
        ["Week", "?w", true],
      ]),
    '<ul class="choices" aria-label="By"><li><a href="?d">Day</a></li><li><a href="?w" aria-current="true">Week</a></li></ul>\n',
  ],
])("a page shows %s", (_, shown, expected) => {
  expect(String(html`${shown()}`)).toBe(expected);
});

test.each([
  ["model", null, "no value"],
  ["model", "nova-3", "nova-3"],
  ["tags", null, "no value"],
  ["tags", "[]", "no tags"],
  ["tags", '["a",null,3]', "a, no value, 3"],
  ["tags", "{}", "{}"],
  ["tags", "[", "["],
  ["accessor", '["a"]', '["a"]'],
])("as text, the group of %s %j is %j", (grouping, group, expected) => {
  expect(groupText(grouping, group)).toBe(expected);
});

test.each([
  ["a name that fits is unchanged", "nova-3", 6, "nova-3"],
  ["a name one character too long gets an ellipsis", "nova-33", 6, "nov…33"],
  ["an empty name stays empty", "", 6, ""],
  ["no emoji is cut in two", "😀😀😀😀", 3, "😀…😀"],
  ["several lines become one", "a\r\n\tb\u0000c", 9, "a b c"],
  ["characters that change the direction of text become spaces", "a\u202eb\u2066c", 9, "a b c"],
  ["a lone surrogate becomes a space", "a\ud83db", 9, "a b"],
  ["a very long word is cut, and the end of the name is kept", `${"x".repeat(500)} 1`, 10, "xxxxxx… 1"],
  ["words near the cut are kept whole", "Call Centre Transcription (region 1)", 30, "Call Centre … (region 1)"],
])("in a label %s", (_, name, charactersMax, expected) => {
  expect(shortName(name, charactersMax)).toBe(expected);
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

test("among the reasons of a change, long names that begin alike can be told apart", () => {
  const part = { part: "group", label: null, status: "changed", groups: 1 } as const;
  const amounts = { before: "1", after: "6", change: "5" };
  const name = "Customer Experience Analytics – Transcription (region";
  const parts = [1, 2].map((n) => ({ ...part, ...amounts, group: `${name} ${n})` }));
  const splits = [{ grouping: "project" as const, lacking: NOTHING_LACKING, parts }];
  expect(reasonSentences({ answer: makeAnswer(), splits })).toEqual([
    "By project: Customer Experience … (region 1) +5 hours, Customer Experience … (region 2) +5 hours.",
  ]);
});
