import { expect, test } from "vitest";
import { columns, type HtmlValue, html, sqlHtml, table, trustedHtml } from "../../src/show/html.ts";

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

test("the totals of a table are apart from its rows", () => {
  const text = String(table("Usage", columns("Model"), [["nova-3"]], [["all"]]));
  expect(text).toMatch(/<tbody>.*nova-3.*<\/tbody><tfoot>.*all.*<\/tfoot>/s);
});
