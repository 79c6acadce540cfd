// Budgets in the configuration: exact amounts, and errors that name the place and the fix.

import { expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { AppError } from "../../src/errors.ts";

const BUDGET = { name: "limit", metric: "hours", amount: 100 };
const EXPORT = { name: "nightly", schedule: "15 2 * * *", window: { days: 3 }, projects: ["one"], groupings: ["none"] };
const PRICE = { metric: "hours", model: "*", currency: "USD", price: 1, from: "2026-01-01" };

function configText(budgets: readonly object[], part: object = {}): string {
  return JSON.stringify({
    service: { baseUrl: "https://api.example.com" },
    projects: ["one", "two", "key only"].map((name, i) => ({ id: `p${i}`, name, key: { env: "KEY" } })),
    exports: [EXPORT],
    budgets,
    ...part,
  });
}

const OPTIONS = { source: "jobs.config.json", baseDir: "/" };

function errorOf(budget: object, part: object = {}): string {
  try {
    parseConfig(configText([{ ...BUDGET, ...budget }], part), OPTIONS);
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
  return "";
}

test("amounts and thresholds keep every digit, and a budget without a project is for all that an export reads", () => {
  const text = configText([{ ...BUDGET, amount: "@", thresholds: ["12.50", 100] }]);
  const { budgets } = parseConfig(text.replace('"@"', "9007199254740993.000000000000000001"), OPTIONS);
  expect(budgets).toMatchObject([
    {
      ...{ name: "limit", metric: "hours", period: "month", scope: "all", projects: [{ id: "p0", name: "one" }] },
      ...{ amount: "9007199254740993.000000000000000001", thresholds: ["12.5", "100"] },
    },
  ]);
});

test.each<[object, string]>([
  [{ amount: 0 }, "budgets[0].amount (line 1): expected more than 0; got 0"],
  [{ amount: "1,5" }, "budgets[0].amount (line 1): expected a decimal number of 0 or more"],
  [{ metric: "hour" }, 'did you mean "hours"?'],
  [
    { thresholds: [80, 80] },
    "budgets[0].thresholds[1] (line 1): expected more than 80, each threshold above the one before; got 80",
  ],
  [{ tag: "a", model: "b" }, 'expected one of key, tag, model; this budget has "tag", too'],
  [{ metric: "cost" }, 'budgets[0].currency (line 1): missing; expected the currency of the cost, such as "USD"'],
  [{ currency: "USD" }, "budgets[0].currency (line 1): expected no currency: hours has none"],
  [{ from: "2026-11-15" }, "budgets[0].from (line 1): expected the first day of a month, as the budget is by month"],
  [{ period: "week" }, 'budgets[0].period (line 1): expected one of "month", "day"'],
  [{ project: "on" }, 'did you mean "one"?'],
])("a budget with %j is refused", (part, message) => {
  expect(errorOf(part)).toContain(message);
});

test("a name must be given once", () => {
  expect(() => parseConfig(configText([BUDGET, BUDGET]), OPTIONS)).toThrow("a name that no other budget has");
});

test.each<[string, object, object, string]>([
  [
    "a grouping that its export does not read",
    { tag: "prod" },
    {},
    'budgets[0] (line 1): no export reads the usage by the grouping "tags" of "one" without conditions, of which this budget is made: add it',
  ],
  [
    "a project that no export reads",
    { project: "two" },
    {},
    'no export reads the usage by the grouping "none" of "two" without conditions',
  ],
  [
    "an export that only reads with a filter",
    { key: "k" },
    { exports: [{ ...EXPORT, groupings: ["accessor"], filters: [{ name: "diarized", features: { diarize: true } }] }] },
    'no export reads the usage by the grouping "accessor" of "one" without conditions',
  ],
  [
    "no export at all",
    {},
    { exports: [] },
    'no export reads the usage by the grouping "none" of any project without conditions',
  ],
  [
    "a cost without prices",
    { metric: "cost", currency: "USD" },
    {},
    'no export reads the billing by the grouping "none" of "one" without conditions',
  ],
  [
    "a cost that is not read by model",
    { metric: "cost", currency: "USD" },
    { prices: [PRICE] },
    'no export reads the billing by the grouping "none" or the usage by the grouping "model" of "one"',
  ],
  [
    "the cost of a tag",
    { metric: "cost", currency: "USD", tag: "prod" },
    { prices: [PRICE] },
    'no export reads the billing by the grouping "tags" of "one" without conditions',
  ],
])("a budget that needs %s is refused", (_, budget, part, message) => {
  expect(errorOf(budget, part)).toContain(message);
});

test.each([
  [{}, "none"],
  [{ key: "k" }, "accessor"],
  [{ tag: "prod" }, "tags"],
])("a cost with %j needs no prices where an export reads the billing by %j", (scope, grouping) => {
  const exports = [EXPORT, { ...EXPORT, name: "bills", source: "billing", groupings: [grouping] }];
  expect(errorOf({ metric: "cost", currency: "USD", ...scope }, { exports })).toBe("");
  expect(errorOf({ metric: "cost", currency: "EUR", ...scope }, { exports })).toContain("the service bills in USD");
});

test.each([
  [{ tag: "prod" }, ["tags"]],
  [{ key: "k" }, ["accessor"]],
  [{ model: "nova-3" }, ["model"]],
  [{ metric: "cost", currency: "USD", model: "nova-3" }, ["model"]],
])("a budget with %j needs an export by %j", (budget, groupings) => {
  expect(errorOf(budget, { exports: [{ ...EXPORT, groupings }], prices: [PRICE] })).toBe("");
});
