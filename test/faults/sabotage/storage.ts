// Sabotages of storing and showing numbers.

import type { Sabotage } from "./sabotage.ts";

export const STORAGE: readonly Sabotage[] = [
  {
    name: "two processes work on one embedded database",
    file: "src/db/connection/lock-file.ts",
    replace: "begin exclusive",
    by: "begin",
    caughtBy: ["test/db/connection/lock-file.test.ts", "with the same process id: one gets the folder"],
  },
  {
    name: "each statement is committed by itself",
    file: "src/db/connection/transaction.ts",
    replace: "db.transaction().execute(transaction)",
    by: "db.connection().execute((one) => transaction(one as unknown as Tx))",
    caughtBy: ["test/db/connection/transaction.test.ts", "an error of the work rolls the transaction back"],
  },
  {
    name: "an answer is not stored in one transaction",
    file: "src/db/usage/batches.ts",
    replace: "hasNew ? undefined : await decideAndWrite(tx, ",
    by: "hasNew ? undefined : await decideAndWrite(db as unknown as Tx, ",
    caughtBy: ["test/db/usage/merge.test.ts", "numbers that Postgres refuses leave everything as it was"],
  },
  {
    name: "a stale decision is written over the numbers that another process has stored",
    file: "src/db/usage/slices.ts",
    replace: "\n      and greatest(sl.fetch_no, sl.suspect_fetch_no) = good.stored_fetch_no",
    by: "",
    caughtBy: [
      "test/db/usage/merge-concurrency.test.ts",
      "an answer that seemed unchanged waits for other numbers that were fetched after it: stale",
    ],
  },
  {
    name: "a setting of a transaction stays on the connection",
    file: "src/db/connection/transaction.ts",
    replace: "(value)}, true)",
    by: "(value)}, false)",
    caughtBy: ["test/db/connection/transaction.test.ts", "no connection of the pool keeps a setting"],
  },
  {
    name: "a transaction that the server ended is not run again",
    file: "src/db/connection/transaction.ts",
    replace: "attempt >= ATTEMPTS_MAX || !isTransient(error)",
    by: "attempt >= 1 || !isTransient(error)",
    caughtBy: ["test/db/connection/transaction.test.ts", "a transaction whose COMMIT fails is repeated"],
  },
  {
    name: "an old failure overwrites a day that was read since",
    file: "src/db/usage/failures.ts",
    replace: "and greatest(fetch_no, suspect_fetch_no) < ",
    by: "and fetch_no < 1000000 + ",
    caughtBy: ["test/db/usage/failures.test.ts", "a failure does not change a day that a later fetch has completed"],
  },
  {
    name: "a day that is not over is closed by its reading",
    file: "src/db/usage/slices.ts",
    replace: "const over = startOfDay(addDays(day, 1));",
    by: "const over = startOfDay(day);",
    caughtBy: ["test/db/views/usage-views.test.ts", "a reading while the day lasts leaves it open"],
  },
  {
    name: "a reading that was requested while the day lasted closes the day",
    file: "src/db/usage/slices.ts",
    replace: "return askedAt >= over ? seenAt : undefined;",
    by: "return seenAt >= over ? seenAt : undefined;",
    caughtBy: ["test/db/views/coverage-views.test.ts", "a day whose reading began before it ended is due again"],
  },
  {
    name: "an open day counts as complete for ever",
    file: "migrations/views/coverage.sql",
    replace: "sl.status = 'complete' and sl.closed_at is null",
    by: "false",
    caughtBy: ["test/db/views/coverage-views.test.ts", "a day whose reading began before it ended is due again"],
  },
  {
    name: "sequences that lag behind the stored numbers are not raised",
    file: "src/jobs/open-context.ts",
    replace: "await raiseLaggingSequences(app, db);\n  await recoverFromClockSetBack",
    by: "await recoverFromClockSetBack",
    caughtBy: [
      "test/cli/recovery/replication.test.ts",
      "an export after the move stores the current numbers of the service",
    ],
  },
  {
    name: "a row keeps its revision when its numbers change",
    file: "src/db/usage/rows.ts",
    replace: "revision = d.revision,",
    by: "",
    caughtBy: ["test/db/usage/merge.test.ts", "a changed row has the next revision"],
  },
  {
    name: "groups that an answer no longer has stay visible",
    file: "src/db/usage/rows.ts",
    replace: "(i.group_id is null and not s.gone)",
    by: "false",
    caughtBy: ["test/db/usage/merge.test.ts", "a group that is gone leaves the views"],
  },
  {
    name: "a group without a value is another group each time",
    file: "src/db/usage/rows.ts",
    replace: ".update(group.key)",
    by: ".update(group.display ?? String(Math.random()))",
    caughtBy: ["test/db/usage/merge.test.ts", "the numbers of a group without a value replace the stored ones"],
  },
  {
    name: "a view leaves out groups without a value",
    file: "migrations/views/visible_row.sql",
    replace: "join usage_export.group_value g using (group_id)\nwhere not r.gone",
    by: "join usage_export.group_value g on g.group_id = r.group_id and g.display <> ''\nwhere not r.gone",
    caughtBy: ["test/db/usage/merge.test.ts", "any value of a group comes back as it was sent"],
  },
  {
    name: "the view of totals includes the rows of the groups",
    file: "migrations/views/usage_total.sql",
    replace: `from usage_export.visible_row where "grouping" = 'none' and filter_key = '{}'`,
    by: `from usage_export.visible_row where filter_key = '{}'`,
    caughtBy: ["test/db/views/usage-views.test.ts", "usage that is also read by a dimension is not in the total"],
  },
  {
    name: "the operators behind a view are resolved with the reader's search path",
    file: "migrations/views/finality.sql",
    replace: `return case
  when seen_from < (usage_date + 1)::timestamp at time zone 'UTC' then 'open'
  when closed_at is null or closed_at > seen_from then 'open'
  when usage_date + window_days >= (seen_from at time zone 'UTC')::date then 'settling'
  else 'final'
end;`,
    by: `as $$ select case
  when seen_from < (usage_date + 1)::timestamp at time zone 'UTC' then 'open'
  when closed_at is null or closed_at > seen_from then 'open'
  when usage_date + window_days >= (seen_from at time zone 'UTC')::date then 'settling'
  else 'final'
end $$;`,
    caughtBy: ["test/db/views/hostile-reader.test.ts", "shadowed operators change nothing"],
  },
  {
    name: "the last day of the window is final a night too soon",
    file: "migrations/views/finality.sql",
    replace: "when usage_date + window_days >= (seen_from",
    by: "when usage_date + window_days > (seen_from",
    caughtBy: [
      "test/db/views/usage-views.test.ts",
      "usage is open today, settling on the days of the window, and final before it",
    ],
  },
  {
    name: "a failed day is shown as complete",
    file: "migrations/views/coverage.sql",
    replace: "else sl.status end as status",
    by: "else replace(sl.status, 'failed', 'complete') end as status",
    caughtBy: [
      "test/db/views/coverage-views.test.ts",
      "a gap is a stretch of consecutive days, either failed or missing",
    ],
  },
  {
    name: "days for which no worker ran are not missing",
    file: "migrations/views/due_series.sql",
    replace: "then greatest(due_through, (now() at time zone 'UTC')::date - 1)",
    by: "then due_through",
    caughtBy: ["test/db/views/coverage-views.test.ts", "all days for which the worker was down are missing"],
  },
  {
    name: "the old value of a changed number is not kept",
    file: "src/db/usage/rows.ts",
    replace: "where d.revision > 1\n    ), updated",
    by: "where d.revision > 2\n    ), updated",
    caughtBy: [
      "test/db/views/history-views.test.ts",
      "bi.usage_as_of shows what the views showed at a moment: before, between and after changes",
    ],
  },
  {
    name: "a restatement lacks the old value",
    file: "migrations/views/restatements.sql",
    replace: "and o.revision = c.revision - 1",
    by: "and o.revision = c.revision - 2",
    caughtBy: ["test/db/views/history-views.test.ts", "a changed number is one restatement, with its old value"],
  },
  {
    name: "a report counts groups that the service no longer names",
    file: "src/db/report/usage.ts",
    replace: "::date and not gone\n",
    by: "::date\n",
    caughtBy: ["test/db/report/breakdowns.test.ts", "a group that the service no longer names is not listed"],
  },
  {
    name: "a report takes a day that was read before its end for complete",
    file: "src/db/report/coverage.ts",
    replace: "if (letter === UNCLOSED) return isDue(day, closingUntil) ? DAY_LETTERS.missing : DAY_LETTERS.open;",
    by: "if (letter === UNCLOSED) return DAY_LETTERS.complete;",
    caughtBy: [
      "test/db/report/report-equals-views.test.ts",
      "after any sequence of readings the report has the numbers and statuses of the views",
    ],
  },
  {
    name: "the earlier conditions of a filter's name are not recorded",
    file: "src/db/usage/series.ts",
    replace: "    await updatePeriods(tx);\n",
    by: "",
    caughtBy: [
      "test/db/views/history-views.test.ts",
      "bi.usage_as_of shows a filter with the conditions that it had at the moment",
    ],
  },
  {
    name: "a filter's name means two filters in two groupings",
    file: "src/db/usage/series.ts",
    replace: "s.project_id = w.project_id and s.filter = w.filter and s.filter_key <> w.filter_key",
    by: `s.project_id = w.project_id and s."grouping" = w."grouping" and s.filter = w.filter and s.filter_key <> w.filter_key`,
    caughtBy: ["test/db/usage/series.test.ts", "a name means one filter in all groupings"],
  },
  {
    name: "bi.usage_as_of runs with the rights of its owner",
    file: "migrations/views/usage_as_of.sql",
    replace: "language sql stable\nbegin atomic\n  select",
    by: "language sql stable security definer\nbegin atomic\n  select",
    caughtBy: ["test/db/views/catalogue.test.ts", "no function of the product runs with the rights of its owner"],
  },
  {
    name: "readers wait behind a migration that waits for one of them",
    file: "src/db/connection/migrate.ts",
    replace: "lockMs}ms`",
    by: "lockMs}s`",
    caughtBy: [
      "test/db/connection/migrate.test.ts",
      "a migration behind a reader's open transaction lets other readers pass",
    ],
  },
  {
    name: "two runs of a job for one scheduled time",
    file: "migrations/0038_separate_installations.ts",
    replace: "create unique index run_scheduled",
    by: "create index run_scheduled",
    caughtBy: ["test/db/jobs/shared-runs.test.ts", "a job has one run for each scheduled time"],
  },
  {
    name: "usage that crosses a tier is priced in both tiers",
    file: "migrations/views/cost_estimated.sql",
    replace: "least(u.through, t.below) - greatest(u.through - u.quantity, t.above)",
    by: "u.quantity",
    caughtBy: ["test/db/views/cost-views.test.ts", "the tiers of a month count all projects together"],
  },
  {
    name: "usage without a price costs nothing",
    file: "migrations/views/cost_estimated.sql",
    replace: "null, m.quantity, null, null, null, 'model', r.finality",
    by: "null, m.quantity, 0, null, null, 'model', r.finality",
    caughtBy: ["test/db/views/cost-views.test.ts", "the rest of the model is shown without a price"],
  },
  {
    name: "a price grows over the past of the next one when that is removed from the file",
    file: "src/usage/prices.ts",
    replace: "isUnchanged ? [...configured, ...stored] : configured",
    by: "isUnchanged ? [...configured] : configured",
    caughtBy: ["test/usage/prices.test.ts", "the older one does not grow over its days"],
  },
];
