// The speed of the views on large databases. With thousands of series the planner must know that gaps are rare: if it expects many, it
// compiles the query (JIT), which takes seconds for a query of a tenth of a second. At a million rows every view of bi must answer a BI
// tool's first questions in under 2 s of CPU, for the reader and with the server's default settings. With the default settings a query of
// one row was once compiled for a minute.

import fs from "node:fs";
import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import type { Database } from "../../../src/db/connection/database.ts";
import { testDatabase } from "../../support/database.ts";

const { db, read } = await testDatabase();
const { db: wide, read: readWide } = await testDatabase();

const SECONDS_MAX = 2;

/** Grouping, source, whether it is filtered, and groups a day: 300 in all. */
const SERIES = [
  ["none", "usage", false, 1],
  ["endpoint", "usage", false, 4],
  ["model", "usage", false, 20],
  ["tags", "usage", false, 80],
  ["accessor", "usage", false, 100],
  ["method", "usage", false, 3],
  ["deployment", "usage", false, 2],
  ["feature_set", "usage", false, 20],
  ["model", "usage", true, 15],
  ["tags", "usage", true, 25],
  ["none", "billing", false, 1],
  ["line_item", "billing", false, 12],
  ["accessor", "billing", false, 17],
] as const;

const views = await read(sql<{ view: string; amount: string | null; jit: boolean; pid: number }>`
  select relname::text as view, pg_jit_available() as jit, pg_backend_pid() as pid,
    (select attname::text from pg_attribute a where a.attrelid = c.oid and attnum > 0 and atttypid = 'numeric'::regtype order by attnum limit 1) as amount
  from pg_class c where relnamespace = 'bi'::regnamespace order by relname
`);
const statements = views.flatMap(({ view, amount }) => [
  `select * from bi.${view} limit 1`,
  `select ${amount ? `sum("${amount}")` : "count(*)"} from bi.${view}`,
]);
statements.push(
  "select * from bi.unused_keys()",
  "select * from bi.top_groups('accessor')",
  "select * from bi.top_groups('tags', days => 90)",
);
const isMeasured = views.some(({ jit, pid }) => jit && cpuSeconds(pid) !== undefined);

/** Stores the series of each project. With gaps, every 50th slice and all rows are left out, and there are budgets of all kinds. */
async function storeLarge(db: Database, projects: number, days: number, withGaps: boolean): Promise<void> {
  const kinds = SERIES.map(([grouping, source, filtered, groups]) => {
    const [key, filter] = filtered ? ['{"dimensions":{"endpoint":"listen"}}', "listen"] : ["{}", "all"];
    return sql`(${grouping}, ${source}, ${key}, ${filter}, ${sql.lit(groups)})`;
  });
  const text = sql`
    create temporary table kind on commit drop as
    select * from (values ${sql.join(kinds)}) as kind ("grouping", source, filter_key, filter, groups);
    insert into usage_export.series (source, project_id, project, "grouping", filter_key, filter, window_days, due_from, due_through, next_due_at)
    select source, 'project-' || n, 'project ' || n, "grouping", filter_key, filter, 7, current_date - ${sql.lit(days)}, current_date - 1, now() + interval '1 day'
    from generate_series(1, ${sql.lit(projects)}) as n cross join kind;
    insert into usage_export.series_period (series_id, project, filter, shown_from) select series_id, project, filter, '-infinity' from usage_export.series;
    insert into usage_export.slice (series_id, usage_date, status, fetch_no, fetched_at, closed_at)
    select series_id, current_date - back, 'complete', 1, now(), (current_date - back + 1)::timestamp + interval '2 hours'
    from usage_export.series cross join generate_series(1, ${sql.lit(days)}) as back
    where not ${sql.lit(withGaps)} or (series_id + back) % 50 <> 0;
    insert into usage_export.group_value ("grouping", key_hash, group_key, display)
    select "grouping", n, case "grouping" when 'none' then '[]' when 'tags' then display else json_build_array(display)::text end, display
    from (select "grouping", max(groups) as groups from kind group by "grouping") k
    cross join lateral generate_series(1, groups) as n
    cross join lateral (
      select case "grouping" when 'tags' then json_build_array('tag-' || n, 'team-' || n % 7)::text when 'line_item' then 'batch::model-' || n
        when 'none' then null else "grouping" || '-' || n end as display
    ) named;
    -- A twentieth was restated.
    insert into usage_export.slice_row (series_id, usage_date, group_id, hours, total_hours, tokens_in, requests, dollars, restates, revision, first_seen_at, last_changed_at)
    select series_id, usage_date, group_id, case when not billed then amount end, case when not billed then 2.5 end, case when not billed then group_id end,
      case when not billed then 5 end, case when billed then amount end, restated, 1 + restated::integer, now() - interval '3 days', now() - interval '1 day'
    from usage_export.series join usage_export.slice using (series_id) join kind using (source, "grouping", filter_key)
    join usage_export.group_value g using ("grouping")
    cross join lateral (select source = 'billing' as billed, group_id % 20 = 0 as restated, (group_id * 7919 + usage_date - date '2020-01-01') % 97 / 10.0 as amount) value
    where key_hash::integer <= groups and not ${sql.lit(withGaps)};
    insert into usage_export.superseded_row (series_id, usage_date, group_id, hours, requests, gone, restates, returned, revision, first_seen_at, last_changed_at, superseded_at)
    select series_id, usage_date, group_id, hours, 4, false, false, false, 1, first_seen_at, first_seen_at, last_changed_at
    from usage_export.slice_row where restates;
    insert into usage_export.listed_key (project_id, api_key_id, comment, scopes, created_at)
    select 'project-' || p, 'accessor-' || n, 'a key', '{}', now() - interval '80 days' from generate_series(1, ${sql.lit(projects)}) as p cross join generate_series(1, 150) as n;
    with price as (
      insert into usage_export.price (metric, model, filter_key, currency, per, valid_from)
      select metric, model, filter_key, 'USD', 'hour', current_date - 300
      from (values ('hours', 'model-1*', '{}'), ('hours', 'model-2', '{}'), ('tokens_in', '*', '{}'), ('hours', 'model-3', '{"dimensions":{"endpoint":"listen"}}')) as p (metric, model, filter_key)
      returning price_id, model
    )
    insert into usage_export.price_tier (price_id, above, below, price, unit_price)
    select price_id, above, below, 1, 1 from price join (values (0, 100), (100, null)) as tier (above, below) on model <> '*'
    union all select price_id, 0, null, 1, 1 from price where model = '*';
    insert into usage_export.budget (name, valid_from, project_ids, scope, scope_value, metric, currency, period, amount, thresholds)
    select scope || metric || period, case when ${sql.lit(withGaps)} then current_date - 300 else date_trunc('month', current_date) end,
      array(select project_id from usage_export.series), scope, case when scope <> 'all' then 'x' end, metric, case metric when 'cost' then 'EUR' end, period, 1, '{80}'
    from unnest(array['all', 'key', 'tag', 'model']) as scope, unnest(array['cost', 'hours']) as metric, unnest(array['day', 'month']) as period
    where ${sql.lit(withGaps)} or (scope = 'all' and period = 'month')
  `;
  // Literals instead of parameters, as only then several statements can be sent at once.
  const { sql: statement, parameters } = text.compile(db);
  const literal = (_: string, n: string) => `'${String(parameters[Number(n) - 1])}'`;
  await db.transaction().execute((tx) => sql.raw(statement.replaceAll(/\$(\d+)/g, literal)).execute(tx));
  await sql`analyze`.execute(db);
}

/** The CPU time of the server's process, of which Linux counts hundredths. Undefined if the process is not visible, as in a container. */
function cpuSeconds(pid: number): number | undefined {
  const file = `/proc/${pid}/stat`;
  const [name, fields = ""] = fs.existsSync(file) ? fs.readFileSync(file, "utf8").split(") ") : [];
  if (!name?.endsWith("(postgres")) return undefined;
  const [user = 0, system = 0] = fields.split(" ").slice(11, 13).map(Number);
  return (user + system) / 100;
}

/** The default of jit_above_cost. */
const JIT_ABOVE_COST = 100_000;
await storeLarge(wide, 500, 7, true);

test.each([
  "select * from bi.coverage_gaps",
  "select * from bi.coverage where status <> 'complete'",
  `select usage_date, "grouping", status, count(*) from bi.coverage where usage_date >= current_date - 30 group by 1, 2, 3`,
  "select * from bi.freshness",
  "select * from bi.budgets",
  "select * from bi.usage_forecast",
  "select * from bi.focus_cost limit 100",
])("the planner's cost of %s is too low for compilation", async (question) => {
  const [row] = await readWide(sql<{ "QUERY PLAN": readonly [{ Plan: { "Total Cost": number } }] }>`
    explain (format json) ${sql.raw(question)}
  `);
  expect(row?.["QUERY PLAN"][0].Plan["Total Cost"]).toBeLessThan(JIT_ABOVE_COST);
});

describe.runIf(isMeasured)("with a server that compiles expressions", async () => {
  if (isMeasured) await storeLarge(db, 37, 90, false);

  test.each(statements)("%s takes less than two seconds of CPU", async (statement) => {
    // Other work on the machine can double the CPU time, so the shortest of three counts.
    let seconds = await secondsOf(statement);
    for (let i = 0; i < 2 && seconds >= SECONDS_MAX; i++) seconds = Math.min(seconds, await secondsOf(statement));
    expect(seconds).toBeLessThan(SECONDS_MAX);
  });
});

async function secondsOf(statement: string): Promise<number> {
  return db.transaction().execute(async (tx) => {
    const { rows } = await sql<{ pid: number; jit: string }>`
          select pg_backend_pid() as pid, current_setting('jit') as jit, set_config('role', 'usage_reader', true)
        `.execute(tx);
    expect(rows[0]?.jit).toBe("on");
    const seconds = () => cpuSeconds(rows[0]?.pid ?? 0) ?? Number.NaN;
    const from = seconds();
    await sql.raw(statement).execute(tx);
    return seconds() - from;
  });
}
