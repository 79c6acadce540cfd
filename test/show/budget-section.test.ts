import { expect, test } from "vitest";
import { budgetSection } from "../../src/show/budget-section.ts";
import type { BudgetUse } from "../../src/usage/budgets.ts";

const USE: BudgetUse = {
  ...{
    name: "<b>limit</b>",
    projectIds: ["p"],
    scope: "all",
    scopeValue: null,
    metric: "hours",
    currency: null,
    costSource: null,
    period: "month",
    start: "2026-03-01",
    end: "2026-03-31",
  },
  ...{ amount: "1000.25", used: "834.5", percent: "83.43", thresholds: ["80", "100"], reached: ["80"] },
  ...{ forecast: "1120.4", forecastLow: null, forecastHigh: null, forecastPercent: "112.01" },
  ...{ daysMissing: 1, daysNotFinal: 2, hasUnpriced: false, isFinal: false, isOver: false, isBeforeStored: false },
  ...{ minimum: null, isNeverSeen: false },
};

/** The cells of each row as text. */
function cellsOf(budgets: readonly BudgetUse[]): readonly (readonly string[])[] {
  const body = budgetSection(budgets)?.body.toString() ?? "";
  const rows = body.match(/<tbody>[\s\S]*<\/tbody>/)?.[0].match(/<tr>[\s\S]*?<\/tr>/g) ?? [];
  return rows.map((row) =>
    (row.match(/<t[hd][\s\S]*?<\/t[hd]>/g) ?? []).map((cell) => cell.replaceAll(/<[^>]*>/g, "").trim()),
  );
}

test("a budget is a row with its amount exact, what is used, and what is not in the numbers", () => {
  expect(cellsOf([USE])).toEqual([
    [
      ...["&lt;b&gt;limit&lt;/b&gt;", "2026-03", "1,000.25 hours", "835", "83.43%", "1,120", "80%"],
      "1 day not read and not counted, 2 days not final",
    ],
  ]);
});

test("what is not known is a dash, and not zero", () => {
  const unread: BudgetUse = {
    ...{ ...USE, used: null, percent: null, forecast: null, reached: [] },
    ...{ daysMissing: 0, daysNotFinal: 0, isFinal: true },
  };
  expect(cellsOf([unread])[0]?.slice(3)).toEqual(["–", "–", "–", "none", "nothing, all days are final"]);
});

test("a value that was never read is said, also of a period that is over, and what only a minimum adds", () => {
  const use: BudgetUse = { ...USE, scope: "tag", scopeValue: "prodd", daysMissing: 0, daysNotFinal: 0, isFinal: true };
  expect(cellsOf([{ ...use, minimum: "12.5", isNeverSeen: true }])[0]?.at(-1)).toBe(
    "no usage of tag &quot;prodd&quot; was ever read, 12.5 of it lacking to the minimum of prices",
  );
});

test("without a budget there is no section", () => {
  expect(budgetSection([])).toBeUndefined();
});
