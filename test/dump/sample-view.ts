// A view with a column of each kind, and rows with values that are hard to encode.

import type { Batches, Column, Row, View } from "../../src/dump/view.ts";

const COLUMNS: readonly Column[] = [
  { name: "project", kind: "text", meaning: "The project" },
  { name: "usage_date", kind: "day", meaning: "The day" },
  { name: "hours", kind: "number", meaning: "Hours" },
  { name: "revision", kind: "integer", meaning: "Times" },
  { name: "extra_metrics", kind: "json", meaning: "More" },
  { name: "seen_at", kind: "instant", meaning: "When" },
];

export const VIEW: View = { name: "sample", meaning: "A sample", columns: COLUMNS };

export const HOSTILE_TEXTS: readonly string[] = [
  "",
  " ",
  "NULL",
  'say "hello", twice',
  "two\nlines",
  "two\r\nlines of Windows",
  "\u202Eright to left\u2066",
  "🦊🇦🇹👨‍👩‍👧",
  "<script>alert(1)</script>",
  "x".repeat(500),
  "back\\slash, semi;colon, tab\tand \u2028 line",
  "\uFEFFmark",
];

export const ROWS: readonly Row[] = [
  ["production", "2026-03-17", "1.5", "1", '{"agents": 2}', "2026-03-18T02:15:00.123456Z"],
  ["production", "1969-12-31", "-0.000000000000000000000001", "-7", "[]", "1969-12-31T23:59:59.999999Z"],
  ["production", "2024-02-29", "99999999999999.999999999999999999999999", "9223372036854775807", '["a"]', null],
  ["production", "2026-03-17", "0", "0", '{"big": 123456789012345678901234567890}', "2026-03-18T00:00:00.000000Z"],
  [null, null, null, null, null, null],
  ...HOSTILE_TEXTS.map((text): Row => [text, "2026-03-17", "2", "3", JSON.stringify({ [text]: 1 }), null]),
];

export async function* inBatches(rows: readonly Row[], size = 2): Batches {
  for (let at = 0; at < rows.length; at += size) yield rows.slice(at, at + size);
}

export async function textOf(pieces: AsyncIterable<string>): Promise<string> {
  return (await Array.fromAsync(pieces)).join("");
}
