import { expect, test } from "vitest";
import { type HtmlValue, html, trustedHtml } from "../../src/report/html.ts";

test.each<[string, HtmlValue, string]>([
  ["markup", "<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"],
  ["quotes, which would end an attribute", `" onload='x'`, "&quot; onload=&#39;x&#39;"],
  ["an entity, so that it is shown as it was written", "&lt;", "&amp;lt;"],
  ["a text that is not there", undefined, ""],
  ["a number", 7, "7"],
  ["an empty text", "", ""],
  ["HTML, which stays", html`<b>${"<"}</b>`, "<b>&lt;</b>"],
  ["HTML that is not from outside", trustedHtml("<br>"), "<br>"],
  ["a list, one after the other", ["<", [html`<i></i>`, undefined]], "&lt;<i></i>"],
  ["a NUL and an escape, which HTML can't hold", "a\0b\u001bc\u0085", "a\ufffdb\ufffdc\ufffd"],
  ["a tab and a new line", "a\tb\nc", "a\tb\nc"],
  ["a carriage return, which a browser would change", "a\rb", "a\ufffdb"],
  ["half a character", "\ud83d and \ude00", "\ufffd and \ufffd"],
  ["a whole one", "😀 \u202e", "😀 \u202e"],
])("fills in %s", (_, filling, expected) => {
  expect(String(html`[${filling}]`)).toBe(`[${expected}]`);
});

test("what stands around the fillings stays as it is", () => {
  expect(String(html`<p class="a">${1}<br>${2}</p>`)).toBe(`<p class="a">1<br>2</p>`);
});
