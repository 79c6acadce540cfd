// Names that could break a page: somebody may give them to a model, tag, project or key, or a service may put them into an error.

export const HOSTILE_NAMES: readonly string[] = [
  "<script>alert(1)</script>",
  `"><img src=x onerror=alert(1)>`,
  "</text></svg><script>alert(2)</script>",
  "</style><script>alert(3)</script>",
  "'; alert(4); '",
  "javascript:alert(5)",
  "{b|rich}{name} {value} {{html}}",
  "__proto__",
  "constructor",
  "toString",
  "\u202egnp.exe\u202c \u2066turned",
  "👩‍👩‍👧‍👦 and 🏴󠁧󠁢󠁥󠁮󠁧󠁿 models",
  "x".repeat(500),
  `${"y".repeat(499)}1`,
  `${"y".repeat(499)}2`,
  "several\r\nlines\tand\u0000control\u001b[31m",
  "half \ud83d of \ude00",
  "日本語の音声認識モデルの名前がとても長い場合",
  `a${"\u0301".repeat(300)}`,
  "",
  "   ",
  "no value",
  "&lt;already&gt; &amp;",
  // A class name that ECharts makes.
  "zr0-c0",
];

/** The names that a service can send, and that the database can store as the name of a group. */
export const STORABLE_NAMES = HOSTILE_NAMES.filter(
  (name) => name.trim() !== "" && name.isWellFormed() && !name.includes("\0"),
);
