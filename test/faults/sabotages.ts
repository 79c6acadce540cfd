// Wrong changes of SQL and of transactions, each with the test that must notice it. At most thirty.

type Sabotage = {
  /** What the product does wrong with this change. */
  readonly name: string;
  readonly file: string;
  /** Is in the file exactly once. */
  readonly replace: string;
  readonly by: string;
  /** A test file, and the name of one of its tests or a part that several have in common. */
  readonly noticedBy: readonly [file: string, test: string];
};

export const SABOTAGES: readonly Sabotage[] = [
  {
    name: "an answer without a date is stored as the usage of a day",
    file: "src/db/usage/writer.ts",
    replace: 'slice.undated && slice.answer.rules.undated === "snapshot"',
    by: 'slice.undated && slice.answer.rules.undated !== "snapshot"',
    noticedBy: ["test/db/behaviour.test.ts", "an answer without any date is a snapshot"],
  },
  {
    name: "each statement is committed by itself",
    file: "src/db/connection/transaction.ts",
    replace: "db.transaction().execute((tx) => work(tx, attempt))",
    by: "db.connection().execute((one) => work(one as unknown as Tx, attempt))",
    noticedBy: ["test/db/connection/transaction.test.ts", "an error of the work rolls the transaction back"],
  },
  {
    name: "an answer is not stored in one transaction",
    file: "src/db/usage/writer.ts",
    replace: "return readAndWrite(tx, answers, slices, [...snapshots])",
    by: "return readAndWrite(db as unknown as Tx, answers, slices, [...snapshots])",
    noticedBy: ["test/db/behaviour.test.ts", "numbers that Postgres refuses leave everything as it was"],
  },
  {
    name: "a stale decision is written over the numbers that another process has stored",
    file: "src/db/usage/stored-slices.ts",
    replace: "\n      and greatest(sl.fetch_no, sl.suspect_fetch_no) = good.stored_fetch_no",
    by: "",
    noticedBy: ["test/db/usage/merge-concurrency.test.ts", "waits for a transaction with numbers fetched"],
  },
  {
    name: "a setting of a transaction stays on the connection",
    file: "src/db/connection/timeouts.ts",
    replace: "', true)",
    by: "', false)",
    noticedBy: ["test/db/connection/transaction.test.ts", "no connection of the pool keeps a setting"],
  },
  {
    name: "a transaction that the server ended is not run again",
    file: "src/db/connection/transaction.ts",
    replace: "attempt >= ATTEMPTS_MAX || !isTransient(error)",
    by: "attempt >= 1 || !isTransient(error)",
    noticedBy: ["test/db/connection/transaction.test.ts", "a transaction whose COMMIT fails is repeated"],
  },
  {
    name: "a reading that was requested while the day lasted closes the day",
    file: "src/db/usage/stored-slices.ts",
    replace: "return askedAt >= over ? seenAt : undefined;",
    by: "return seenAt >= over ? seenAt : undefined;",
    noticedBy: ["test/db/views/coverage-views.test.ts", "a day whose reading began before it ended is due again"],
  },
  {
    name: "an open day counts as complete for ever",
    file: "migrations/views/coverage.sql",
    replace: "sl.status = 'complete' and sl.closed_at is null",
    by: "false",
    noticedBy: ["test/db/views/coverage-views.test.ts", "a day whose reading began before it ended is due again"],
  },
  {
    name: "groups that an answer no longer has stay visible",
    file: "src/db/usage/stored-slices.ts",
    replace: "(i.group_id is null and not s.gone)",
    by: "false",
    noticedBy: ["test/db/usage/merge-model.test.ts", "after any sequence of readings"],
  },
  {
    name: "a view leaves out groups without a value",
    file: "migrations/views/visible_usage.sql",
    replace: "left join usage_export.group_value g using (group_id)\nwhere not r.gone",
    by: "join usage_export.group_value g on g.group_id = r.group_id and g.display <> ''\nwhere not r.gone",
    noticedBy: ["test/db/behaviour.test.ts", "any value of a group comes back as it was sent"],
  },
  {
    name: "the view of totals includes the rows of the groups",
    file: "migrations/views/usage_total.sql",
    replace: "from usage_export.visible_usage where \"grouping\" = 'none' and filter_key = '{}'",
    by: "from usage_export.visible_usage where filter_key = '{}'",
    noticedBy: ["test/db/views/usage-views.test.ts", "the total has one row for each project and day"],
  },
  {
    name: "the operators behind a view are resolved with the reader's search path",
    file: "migrations/views/finality.sql",
    replace:
      "return case\n  when seen_from < (usage_date + 1)::timestamp at time zone 'UTC' then 'open'\n  when closed_at is null or closed_at > seen_from then 'open'\n  when usage_date + window_days >= (seen_from at time zone 'UTC')::date then 'settling'\n  else 'final'\nend;",
    by: "as $$ select case\n  when seen_from < (usage_date + 1)::timestamp at time zone 'UTC' then 'open'\n  when closed_at is null or closed_at > seen_from then 'open'\n  when usage_date + window_days >= (seen_from at time zone 'UTC')::date then 'settling'\n  else 'final'\nend $$;",
    noticedBy: ["test/db/views/catalogue.test.ts", "the functions of both schemas are stored parsed"],
  },
  {
    name: "a failed day is shown as complete",
    file: "migrations/views/coverage.sql",
    replace: "else sl.status end as status",
    by: "else replace(sl.status, 'failed', 'complete') end as status",
    noticedBy: ["test/db/views/coverage-views.test.ts", "a missing or failed day is settling while it is in"],
  },
  {
    name: "a restatement lacks the old value",
    file: "migrations/views/restatements.sql",
    replace: "and o.revision = c.revision - 1",
    by: "and o.revision = c.revision - 2",
    noticedBy: ["test/db/views/history-views.test.ts", "a changed number is one restatement, with its old value"],
  },
  {
    name: "bi.usage_as_of runs with the rights of its owner",
    file: "migrations/views/usage_as_of.sql",
    replace: "language sql stable\nbegin atomic\n  select",
    by: "language sql stable security definer\nbegin atomic\n  select",
    noticedBy: ["test/db/views/catalogue.test.ts", "run with their owner's rights"],
  },
  {
    name: "usage that crosses a tier is priced in both tiers",
    file: "migrations/views/cost_estimated.sql",
    replace: "least(u.through, t.below) - greatest(u.through - u.quantity, t.above)",
    by: "u.quantity",
    noticedBy: ["test/db/views/cost-views.test.ts", "the view has exactly the calculated rows"],
  },
  {
    name: "usage without a price costs nothing",
    file: "migrations/views/cost_estimated.sql",
    replace: "null, m.quantity, null, null, null, 'model', u.finality",
    by: "null, m.quantity, 0, null, null, 'model', u.finality",
    noticedBy: ["test/db/views/cost-views.test.ts", "the view has exactly the calculated rows"],
  },
  {
    name: "a created key is committed without waiting for the disk",
    file: "src/db/keys/ledger.ts",
    replace: "        await commitDurably(tx);\n",
    by: '        if (changeId === "") await commitDurably(tx);\n',
    noticedBy: ["test/db/keys/ledger.test.ts", "an intent, a created key and its secret are committed with"],
  },
  {
    name: "the sealed secret is kept when its key is retired",
    file: "src/db/keys/ledger.ts",
    replace: "sealed: null,",
    by: "",
    noticedBy: ["test/db/keys/ledger.test.ts", "retiring a key removes it from the ledger and erases its secret"],
  },
  {
    name: "two processes rotate a key at once",
    file: "src/db/keys/lease.ts",
    replace: " and (lease_until is null or lease_until < clock_timestamp())",
    by: "",
    noticedBy: ["test/db/keys/lease.test.ts", "of many processes that take a lease at the same moment one gets it"],
  },
  {
    name: "a process that slept through its lease goes on writing",
    file: "src/db/keys/lease.ts",
    replace: " and fence = ",
    by: " and fence >= ",
    noticedBy: ["test/db/keys/lease.test.ts", "a process that slept through its lease does not write"],
  },
  {
    name: "a budget whose days were not read is shown as unused",
    file: "migrations/views/budget_use.sql",
    replace: "case when max(d.fetched_at) is not null then coalesce(sum(d.amount), 0) end as used",
    by: "coalesce(sum(d.amount), 0) as used",
    noticedBy: ["test/db/views/budgets.test.ts", "days that were not read are counted as missing"],
  },
  {
    name: "an unusual day is over before anybody could be notified",
    file: "migrations/views/usage_anomalies.sql",
    replace: "interval '12 hours'",
    by: "interval '0 hours'",
    noticedBy: ["test/db/behaviour.test.ts", "an anomaly ends with a later usual day"],
  },
  {
    name: "a forecast takes days that may lack usage as they are",
    file: "migrations/views/month_forecast.sql",
    replace: "day >= today - 70 and is_known",
    by: "day >= today - 70",
    noticedBy: ["test/db/views/forecast-view.test.ts", "a day that may lack usage is estimated"],
  },
  {
    name: "billing is shown as usage",
    file: "migrations/views/visible_usage.sql",
    replace: "s.superseded_at is null and s.source = 'usage';",
    by: "s.superseded_at is null;",
    noticedBy: ["test/db/usage/billing.test.ts", "storing billing changes no number of usage"],
  },
  {
    name: "a budget of usage counts the days of billing as read",
    file: "migrations/views/budget_series.sql",
    replace: "when b.metric <> 'cost' then s.source = 'usage' and",
    by: "when b.metric <> 'cost' then",
    noticedBy: ["test/db/views/budgets.test.ts", "billing of the same grouping says nothing of a budget of usage"],
  },
  {
    name: "the change in usage is explained with days of billing",
    file: "migrations/views/usage_change.sql",
    replace: "where c.source = 'usage' and c.fetched_at is not null",
    by: "where c.fetched_at is not null",
    noticedBy: ["test/db/usage/billing.test.ts", "storing billing changes no number of usage"],
  },
  {
    name: "a day of a budget is billed before its billing was read",
    file: "migrations/views/budget_use.sql",
    replace: "usage_date = day.usage_date and fetched_at is not null offset 0",
    by: "usage_date = day.usage_date offset 0",
    noticedBy: ["test/db/views/budgets.test.ts", "a day whose billing was not read yet is estimated"],
  },
  {
    name: "a day with an amount that is not known is compared",
    file: "migrations/views/billed_change.sql",
    replace: "and cost_day.is_unknown is not true",
    by: "and true",
    noticedBy: ["test/db/views/changes-random.test.ts", "each row of bi.billed_change is the calculated one"],
  },
];
