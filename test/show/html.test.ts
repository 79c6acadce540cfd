import { expect, test } from "vitest";
import {
  characterCount,
  choiceList,
  columns,
  copyLink,
  folded,
  foldedText,
  groupText,
  type HtmlValue,
  html,
  instantHtml,
  joinHtml,
  numberColumns,
  optionHtml,
  sqlHtml,
  stateHtml,
  table,
  trustedHtml,
} from "../../src/show/html.ts";

test.each<[string, HtmlValue, string]>([
  ["markup, escaped", "<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"],
  ["quotes, escaped because they would end an attribute", `" onload='x'`, "&quot; onload=&#39;x&#39;"],
  ["an entity, escaped so that it is shown as it was written", "&lt;", "&amp;lt;"],
  ["nothing for undefined", undefined, ""],
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
])("inserts %s", (_, filling, expected) => {
  expect(String(html`[${filling}]`)).toBe(`[${expected}]`);
});

test("the text around inserted values is unchanged", () => {
  expect(String(html`<p class="a">${1}<br>${2}</p>`)).toBe(`<p class="a">1<br>2</p>`);
});

test("a button to copy has its text escaped, and is not shown before the script shows it", () => {
  const text = String(sqlHtml("select 1 < 2"));
  expect(text).toContain(`<button type="button" class="copy" hidden data-copy="select 1 &lt; 2">Copy SQL</button>`);
  expect(text).toContain("<code>select 1 &lt; 2</code>");
});

test("in a table the first cell of a row is its heading, numbers are aligned, and totals are apart from the rows", () => {
  const titles = [...columns("Model"), ...numberColumns("Hours")];
  const text = String(table("Usage", titles, [["nova-3", 7]], [["all", 9]]));
  expect(text).toContain('<tr><th scope="col">Model</th><th scope="col" class="n">Hours</th></tr>');
  const row = (name: string, hours: number) => `<tr><th scope="row">${name}</th><td class="n">${hours}</td></tr>\n`;
  expect(text).toContain(`<tbody>\n${row("nova-3", 7)}</tbody><tfoot>${row("all", 9)}</tfoot>\n</table>`);
  expect(String(table("Usage", numberColumns("Hours"), [[1]]))).toContain('<th scope="row" class="n">1</th>');
  expect(String(table("Usage", titles, []))).not.toContain("tfoot");
});

const LONG = "x".repeat(121);

// Functions, so that mutation testing sees which test calls what.
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
  ["parts with a separator between them", () => joinHtml(["a", "b", "c"], ", "), "a, b, c"],
  [
    "a button that copies a link",
    () => copyLink("Link", "?a&b"),
    '<button type="button" class="copy" hidden data-copy-link="?a&amp;b">Link</button>',
  ],
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
])("shows %s", (_, shown, expected) => {
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

test("a letter with its accent is one character", () => {
  expect(characterCount("e\u0301a")).toBe(2);
});
