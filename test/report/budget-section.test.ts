import { expect, test } from "vitest";
import { budgetSection } from "../../src/report/budget-section.ts";
import type { BudgetUse } from "../../src/usage/budget-use.ts";

const USE: BudgetUse = {
  ...{
    name: "<b>limit</b>",
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
  const unread = { ...USE, used: null, percent: null, forecast: null, reached: [], isFinal: true };
  expect(cellsOf([unread])[0]?.slice(3)).toEqual(["–", "–", "–", "none", "nothing, all days are final"]);
});

test("without a budget there is no section", () => {
  expect(budgetSection([])).toBeUndefined();
});
