// Wrong costs, budgets and fan-outs.

import type { Sabotage } from "./sabotage.ts";

export const COSTS: readonly Sabotage[] = [
  {
    name: "billing is shown as usage",
    file: "migrations/views/visible_row.sql",
    replace: "s.superseded_at is null and s.source = 'usage';",
    by: "s.superseded_at is null;",
    caughtBy: ["test/db/usage/billing.test.ts", "where billing is stored, all numbers of usage are as they were"],
  },
  {
    name: "a budget of usage counts the days of billing as read",
    file: "migrations/views/budget_series.sql",
    replace: "when b.metric <> 'cost' then s.source = 'usage' and",
    by: "when b.metric <> 'cost' then",
    caughtBy: ["test/db/views/budgets.test.ts", "billing of the same grouping says nothing of a budget of usage"],
  },
  {
    name: "the change in usage is explained with days of billing",
    file: "migrations/views/usage_change.sql",
    replace: "where c.source = 'usage' and c.fetched_at is not null",
    by: "where c.fetched_at is not null",
    caughtBy: ["test/db/usage/billing.test.ts", "where billing is stored, all numbers of usage are as they were"],
  },
  {
    name: "a day of a budget is billed before its billing was read",
    file: "migrations/views/budget_amount.sql",
    replace: "sl.usage_date = c.usage_date and sl.fetched_at is not null",
    by: "true",
    caughtBy: ["test/db/views/budgets.test.ts", "a day without billing is estimated, also while billing is configured"],
  },
  {
    name: "a day of a budget is estimated although its billing was read",
    file: "migrations/views/budget_amount.sql",
    replace: "    and not exists (\n      select from usage_export.budget_series s",
    by: "    and exists (\n      select from usage_export.budget_series s",
    caughtBy: [
      "test/db/views/budgets.test.ts",
      "a cost is the billed one where billing is read as the budget needs it",
    ],
  },
  {
    name: "FOCUS has a day's estimate beside what was billed",
    file: "migrations/views/focus_cost.sql",
    replace: "d.project_id = e.project_id and d.usage_date = e.usage_date",
    by: "false",
    caughtBy: ["test/db/views/focus-cost.test.ts", "a day that was billed has no estimate"],
  },
  {
    name: "a project is explained from billing that was read on fewer days",
    file: "src/db/report/cost-change.ts",
    replace: "d.billed >= coalesce(d.estimated, 0)",
    by: "d.billed > 0",
    caughtBy: ["test/db/views/billed-change.test.ts", "a project is explained from its billing once"],
  },
  {
    name: "a day with an amount that is not known is compared",
    file: "migrations/views/billed_change.sql",
    replace: "and cost_day.is_unknown is not true",
    by: "and true",
    caughtBy: ["test/db/views/billed-change.test.ts", "a day that was not read, or has a charge without an amount"],
  },
  {
    name: "days before a project's first due day are missing in a budget",
    file: "migrations/views/budget_series.sql",
    replace: "s.due_from, priced.days as priced_days",
    by: "null::date as due_from, priced.days as priced_days",
    caughtBy: [
      "test/db/views/budgets.test.ts",
      "a project that joins later is missing on no day before its first due one",
    ],
  },
  {
    name: "a fan-out reads more values than it may",
    file: "src/jobs/seen-values.ts",
    replace: "all.filter(isFit).slice(0, atMost)",
    by: "all.filter(isFit)",
    caughtBy: ["test/cli/export/each.test.ts", "at most so many values are read, those with the most requests"],
  },
  {
    name: "a fan-out reads the values of billing",
    file: "src/db/usage/seen-values.ts",
    replace: "where source = 'usage' and project_id",
    by: "where project_id",
    caughtBy: ["test/db/usage/seen-values.test.ts", "a tag that only billing has is no value of usage"],
  },
  {
    name: "many days of a budget are a notification each",
    file: "src/health/digests.ts",
    replace: "set.length <= SINGLE_MAX",
    by: "set.length > 0",
    caughtBy: [
      "test/health/budget-alerts.test.ts",
      "many days that are caught up are one notification for all of them",
    ],
  },
  {
    name: "an open alert is sent again once its project is renamed",
    file: "src/db/usage/series.ts",
    replace: "    await renameAlerts(tx);\n",
    by: "",
    caughtBy: ["test/db/anomalies.test.ts", "an open alert about a project that is renamed is not sent again"],
  },
];
