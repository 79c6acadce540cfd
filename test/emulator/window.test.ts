import { expect, test } from "vitest";
import { breakdown, start } from "./ask.ts";

test.each([
  ["start=2026-03-01&end=2026-03-02", "2026-03-01", "2026-03-02", 2],
  ["start=2026-03-02&end=2026-03-02", "2026-03-02", "2026-03-02", 1],
  ["start=2024-02-28&end=2024-03-01", "2024-02-28", "2024-03-01", 3],
  ["start=2026-03-02&end=2026-03-01", "2026-03-02", "2026-03-01", 0],
  ["start=2026-03-17&end=2026-03-20", "2026-03-17", "2026-03-20", 2],
  ["", "2026-02-16", "2026-03-17", 30],
  ["start=2026-03-15", "2026-03-15", "2026-03-17", 3],
  ["end=2026-01-31", "2026-01-02", "2026-01-31", 30],
])(
  "the query '%s' is answered for %s to %s, with rows for past days and today only",
  async (query, first, last, days) => {
    await using emulator = await start({ usage: () => [{ requests: 1 }] });
    const answer = await breakdown(emulator, query);
    expect(answer).toMatchObject({ start: first, end: last, resolution: { units: "day", amount: 1 } });
    expect(answer.results).toHaveLength(days);
  },
);
