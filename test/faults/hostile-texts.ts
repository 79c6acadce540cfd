// Unusual and malicious texts, for names of models and tags, comments, errors, projects.

const forged = '\r\n{"level":30,"time":"2026-01-01T00:00:00.000Z","msg":"forged"}';

/** All are different, and must stay different when they are stored. */
// biome-ignore format: one text a line would be a page that nobody looks over.
export const HOSTILE_TEXTS: readonly string[] = [
  // Empty texts, and texts that may be taken for no value.
  "", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u200b", "\u2060", "\ufeff", "\u3000", "null", "NULL", "undefined",
  "NaN", "none", "None", "nil", "N/A", "-", "absent", "all", "[]", "{}", '""', "[null]", '["a"]', "0", "-0", "1e3",
  "0x10", "Infinity", "true", "false", "2026-01-01",
  // Scripts, and the same word written in several ways.
  "Zürich", "Zu\u0308rich", "ﬁle", "file", "Å", "Å", "A\u030a", "ſ", "s", "İstanbul", "istanbul", "ISTANBUL",
  "straße", "strasse", "日本語の音声", "한국어", "\u1112\u1161\u11ab", "العربية", "עברית", "हिन्दी", "ไทย", "ελληνικά",
  "Ελληνικά", "русский", "pусский", "𝓬𝓾𝓻𝓼𝓲𝓿𝓮", "Ωmega", "Ωmega", "👩‍👩‍👧‍👦", "👩👩👧👦", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🇦🇹", "🇦 🇹", "👍🏽",
  "☺", "☺\ufe0f", `a${"\u0301".repeat(300)}`, "\u{10ffff}", "\ufffd", "\uffff", "\ue000",
  // Text direction and invisible characters.
  "\u202egnp.exe", "\u2066turned\u2069", "\u200fright", "soft\u00adhyphen", "zero\u200dwidth", "zerowidth",
  "line\u2028end", "paragraph\u2029end", "\u0085",
  // Control characters and terminal sequences.
  "\u0000", "a\u0000b", "\\u0000", "\u0001\u0002\u001f\u007f", "\u001b[31mred\u001b[0m", "\u001b]0;title\u0007",
  "\u001b[2J", "\u009b31m", "\b\b\b", "back\rover", `a${forged}`, '","level":60,"x":"', "%s%s%n%d", "$".concat("{7*7}"),
  "{{7*7}}", "$(id)", "`id`", "; rm -rf /", "| cat",
  // Quotes, SQL, JSON, markup, formulas, paths.
  "'", '"', "\\", "\\\\", "''", '\\"', "';--", "'; drop table usage_export.slice; --", "1 or 1=1", "$1", "$$",
  "E'\\x41'", "\\x41", "%", "_", "*", "?", "pg_sleep(9)", "<script>alert(1)</script>",
  '"><img src=x onerror=alert(1)>', "</title><script>", "</style><style>*{}", "<!--", "-->", "]]>", "&lt;",
  "&amp;lt;", "&", "javascript:alert(1)", "{b|rich}", "=1+1", "+1+1", "-1+1", "@SUM(A1)",
  '=HYPERLINK("http://127.0.0.1","x")', "\t=1+1", "\r=1+1", "＝1+1", " =1+1", '"=1+1', ";=1+1", "=cmd|' /C calc'!A0",
  "'=1+1", "a,b", "a;b", "a\tb", 'a"b', "a\nb", "a\r\nb", "a\rb", "../../etc/passwd", "..\\..\\", "/", "//",
  "file:///etc/passwd", "C:\\nul", "CON", "a/b", "%2e%2e%2f", "%00", "?x=1&grouping=model", "#", "__proto__",
  "constructor", "prototype", "toString", "hasOwnProperty", "length", "then",
  // Lengths.
  "x".repeat(100), "x".repeat(500), `${"x".repeat(499)}y`, `${"x".repeat(999)}😀`, "é".repeat(100_000),
  `${"é".repeat(99_999)}e`,
];
