// Storing numbers and showing them, done wrong.

import type { Sabotage } from "./sabotage.ts";

export const STORAGE: readonly Sabotage[] = [
  {
    name: "each statement is committed by itself",
    file: "src/db/transaction.ts",
    replace: "db.transaction().execute(transaction)",
    by: "db.connection().execute((one) => transaction(one as unknown as Tx))",
    caughtBy: ["test/db/transaction.test.ts", "an error of the work itself undoes it"],
  },
  {
    name: "an answer is stored row by row",
    file: "src/db/merge.ts",
    replace: "return inTransaction(db, async (tx) => {\n    const stored",
    by: `const atOnce = (work: (tx: Tx) => Promise<readonly MergeResult[]>) => work(db as unknown as Tx);
  return atOnce(async (tx) => {
    const stored`,
    caughtBy: ["test/db/merge.test.ts", "numbers that Postgres refuses leave everything as it was"],
  },
  {
    name: "a setting is left on the session",
    file: "src/db/transaction.ts",
    replace: "set_config('lock_timeout', '20s', true)",
    by: "set_config('lock_timeout', '20s', false)",
    caughtBy: ["test/db/transaction.test.ts", "no connection of the pool keeps a setting"],
  },
  {
    name: "a transaction that the server ended is not run again",
    file: "src/db/transaction.ts",
    replace: "attempt >= ATTEMPTS_MAX || !isTransient(error)",
    by: "attempt >= 1 || !isTransient(error)",
    caughtBy: ["test/db/transaction.test.ts", "a COMMIT that fails is a transaction that is run again"],
  },
  {
    name: "a failure of long ago undoes a day that was read since",
    file: "src/db/failures.ts",
    replace: "and fetch_no < ",
    by: "and fetch_no < 1000000 + ",
    caughtBy: ["test/db/failures.test.ts", "a failure that comes after a later fetch has completed the day"],
  },
  {
    name: "a day that is not over is closed by its reading",
    file: "src/db/write-slices.ts",
    replace: "return seenAt >= over ? seenAt : undefined;",
    by: "return seenAt;",
    caughtBy: ["test/db/usage-views.test.ts", "a reading while the day lasts leaves it open"],
  },
  {
    name: "a row keeps its revision when its numbers change",
    file: "src/db/merge-rows.ts",
    replace: "revision = d.revision,",
    by: "",
    caughtBy: ["test/db/merge.test.ts", "a changed row has the next revision"],
  },
  {
    name: "groups that are gone stay",
    file: "src/db/merge-rows.ts",
    replace: "(i.group_id is null and not s.gone)",
    by: "false",
    caughtBy: ["test/db/merge.test.ts", "a group that is gone leaves the views"],
  },
  {
    name: "what has no value is another group each time",
    file: "src/db/group-values.ts",
    replace: ".update(group.key)",
    by: ".update(group.display ?? String(Math.random()))",
    caughtBy: ["test/db/merge.test.ts", "the numbers of a group without a value take the place of those before"],
  },
  {
    name: "a view leaves out what has no value",
    file: "migrations/0002_create_bi_views.ts",
    replace: "join usage_export.group_value g using (group_id)\n    where not r.gone",
    by: "join usage_export.group_value g on g.group_id = r.group_id and g.display <> ''\n    where not r.gone",
    caughtBy: ["test/db/merge.test.ts", "any value of a group comes back as it was sent"],
  },
  {
    name: "the total holds the groups as well",
    file: "migrations/0002_create_bi_views.ts",
    replace: `from usage_export.visible_row where "grouping" = 'none' and filter_key = '{}'`,
    by: `from usage_export.visible_row where filter_key = '{}'`,
    caughtBy: ["test/db/usage-views.test.ts", "what is read by a dimension too is not in the total"],
  },
  {
    name: "the last day of the window is final a night too soon",
    file: "migrations/0002_create_bi_views.ts",
    replace: "when usage_date + window_days >= (seen_from",
    by: "when usage_date + window_days > (seen_from",
    caughtBy: ["test/db/usage-views.test.ts", "usage of today is open, of the window that is read again settling"],
  },
  {
    name: "a failed day is shown as complete",
    file: "migrations/0002_create_bi_views.ts",
    replace: "sl.usage_date, sl.status,",
    by: "sl.usage_date, replace(sl.status, 'failed', 'complete') as status,",
    caughtBy: ["test/db/coverage-views.test.ts", "gaps are stretches of days, those that failed apart"],
  },
  {
    name: "nights without a worker are not missing",
    file: "migrations/0002_create_bi_views.ts",
    replace: "when now() >= next_due_at then greatest(due_through, (now() at time zone 'UTC')::date - 1)",
    by: "when now() >= next_due_at then due_through",
    caughtBy: ["test/db/coverage-views.test.ts", "a worker that was down for days is missing all of them"],
  },
  {
    name: "a restatement forgets what the number was",
    file: "migrations/0002_create_bi_views.ts",
    replace: "and old.revision = c.revision - 1",
    by: "and old.revision = c.revision - 2",
    caughtBy: ["test/db/history-views.test.ts", "a changed number is one restatement, with what it was"],
  },
  {
    name: "two runs of one moment",
    file: "migrations/0001_create_usage.ts",
    replace: "create unique index run_scheduled",
    by: "create index run_scheduled",
    caughtBy: ["test/db/shared-runs.test.ts", "of one moment there is one run"],
  },
];
