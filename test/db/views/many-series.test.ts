// With thousands of series the planner must know that gaps are rare. Where it expects many, it compiles the query (JIT), which takes
// seconds for a query of a tenth of a second, and a reader of bi can't be expected to turn that off.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { testDatabase } from "../../support/database.ts";

const { db } = await testDatabase();

const SERIES = 6_400;
const DAYS = 7;
/** The default of jit_above_cost. */
const JIT_ABOVE_COST = 100_000;

await sql`
  insert into usage_export.series (source, project_id, project, "grouping", filter_key, filter, window_days, due_from, due_through, next_due_at)
  select case n % 2 when 0 then 'billing' else 'usage' end, 'project ' || n, 'project ' || n, case n % 2 when 0 then 'none' else 'model' end, '{}', 'all', 7, current_date - ${sql.lit(DAYS)}, current_date - 1,
    now() + interval '1 day'
  from generate_series(1, ${sql.lit(SERIES)}) as n
`.execute(db);
await sql`
  insert into usage_export.slice (series_id, usage_date, status, fetched_at, closed_at)
  select series_id, current_date - back, 'complete', now(), now()
  from usage_export.series cross join generate_series(1, ${sql.lit(DAYS)}) as back
  where (series_id + back) % 50 <> 0
`.execute(db);
await sql`
  insert into usage_export.budget (name, valid_from, project_ids, scope, scope_value, metric, currency, period, amount, thresholds)
  select scope || metric || period, current_date - 300, array(select project_id from usage_export.series), scope,
    case when scope <> 'all' then 'x' end, metric, case metric when 'cost' then 'USD' end, period, 1, '{80}'
  from unnest(array['all', 'key', 'tag', 'model']) as scope, unnest(array['cost', 'hours']) as metric, unnest(array['day', 'month']) as period
`.execute(db);
await sql`
  with price as (
    insert into usage_export.price (metric, model, filter_key, currency, per, valid_from)
    values ('hours', '*', '{}', 'USD', 'hour', current_date - 300) returning price_id
  )
  insert into usage_export.price_tier (price_id, above, price, unit_price) select price_id, above, 1, 1 from price, unnest('{0,10}'::numeric[]) as above
`.execute(db);
await sql`analyze usage_export.series, usage_export.slice, usage_export.budget, usage_export.price, usage_export.price_tier`.execute(
  db,
);

test.each([
  "select * from bi.coverage_gaps",
  "select * from bi.coverage where status <> 'complete'",
  `select usage_date, "grouping", status, count(*) from bi.coverage where usage_date >= current_date - 30 group by 1, 2, 3`,
  "select * from bi.freshness",
  "select * from bi.budgets",
  "select * from bi.usage_forecast",
  "select * from bi.focus_cost limit 100",
])("the estimated cost of %s is below that from which a query is compiled", async (question) => {
  const { rows } = await sql<{ "QUERY PLAN": readonly [{ Plan: { "Total Cost": number } }] }>`
    explain (format json) ${sql.raw(question)}
  `.execute(db);
  expect(rows[0]?.["QUERY PLAN"][0].Plan["Total Cost"]).toBeLessThan(JIT_ABOVE_COST);
});

test("each of the days that were never read is in a gap", async () => {
  const { rows } = await sql`
    select sum(days)::integer as days, (select count(*)::integer from bi.coverage where status = 'missing') as missing from bi.coverage_gaps
  `.execute(db);
  const lacking = (SERIES * DAYS) / 50;
  expect(rows).toEqual([{ days: lacking, missing: lacking }]);
});
