import { expect, test } from "vitest";
import { periodViolation } from "../../src/report/report-data.ts";

const TODAY = "2026-03-18";

test.each([
  ["2026-03-18", "2026-03-18", undefined],
  ["2026-03-18", "2026-03-19", "ends after today"],
  ["2026-03-19", "2026-03-18", "begins after its end"],
  ["2000-01-01", "2000-01-01", undefined],
  ["1999-12-31", "2000-01-01", "begins too early"],
  ["2024-01-01", "2024-12-31", undefined],
  ["2024-01-01", "2025-01-01", "has too many days"],
])("of %s to %s is told: %s", (start, end, broken) => {
  expect(periodViolation({ start, end }, TODAY)).toBe(broken);
});
