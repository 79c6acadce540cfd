// What a BI tool finds: the views with their columns and comments, and the privileges of their reader.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { startRun } from "../../../src/db/jobs/runs.ts";
import { USAGE_DIMENSIONS } from "../../../src/usage/dimensions.ts";
import { testDatabase } from "../../support/database.ts";
import { failOn, newSeries, store } from "../stored-usage.ts";

const { db, read } = await testDatabase();

const METRICS = ["hours", "total_hours", "agent_hours", "tokens_in", "tokens_out", "tts_characters", "requests"];
const ROW = [...METRICS, "extra_metrics", "finality", "revision", "first_seen_at", "last_changed_at"];
const SERIES = ["project_id", "project", "usage_date"];
const FILTERED = [...SERIES, "grouping", "filter", "group_value", ...ROW];
const DIMENSIONS = ["accessor", "deployment", "endpoint", "feature_set", "model", "method", "tags"];
const COST = "amount currency finality is_final fetched_at revision first_seen_at last_changed_at".split(" ");
const COST_DIMENSIONS = ["accessor", "lineage", "deployment", "line_item", "tags"];

/** Dashboards use these names: columns may be added, and none may be removed. */
const PROMISED: Readonly<Record<string, readonly string[]>> = {
  usage_total: [...SERIES, ...ROW],
  ...Object.fromEntries(DIMENSIONS.map((dimension) => [`usage_by_${dimension}`, [...SERIES, dimension, ...ROW]])),
  usage_filtered: FILTERED,
  coverage: ["project", "grouping", "filter", "usage_date", "status", "finality", "fetched_at", "rows", "error"],
  coverage_gaps: ["project", "grouping", "filter", "from_date", "to_date"],
  freshness: ["project", "grouping", "filter"],
  restatements: [],
  reconciliation: [],
  ...Object.fromEntries(
    ["deployment", "line_item", "tags"].map((name) => [`cost_by_${name}`, [...SERIES, name, ...COST]]),
  ),
  cost_total: [...SERIES, ...COST],
  cost_by_key: [...SERIES, "accessor", "rotation", "lineage", ...COST],
  cost_by_group: [...SERIES, "grouping", ...COST_DIMENSIONS, ...COST],
  cost_filtered: [...SERIES, "grouping", "filter", ...COST_DIMENSIONS, ...COST],
  balances: ["project_id", "project", "balance_id", "amount", "units", "read_at", "last_read_at", "ended_at"],
  runs: [],
  api_keys: [],
  usage_snapshot: [
    ...["project_id", "project", "grouping", "filter", "taken_at", "group_value", ...METRICS, "extra_metrics"],
    ...METRICS.map((metric) => `${metric}_change`),
    "fell",
  ],
};

const names = async (query: ReturnType<typeof sql<{ name: string }>>) => (await read(query)).map(({ name }) => name);

const views = await names(sql`
  select relname as name from pg_class where relnamespace = 'bi'::regnamespace order by relname
`);

test("the promised views have one for every dimension of usage", () => {
  expect(DIMENSIONS.toSorted()).toEqual(USAGE_DIMENSIONS);
});

test("schema bi has the promised views with their columns", async () => {
  const columns = await read(sql<{ view: string; column: string }>`
    select relname as view, attname as column from pg_attribute a join pg_class c on c.oid = attrelid
    where relnamespace = 'bi'::regnamespace and relkind = 'v' and attnum > 0 order by attnum
  `);
  const found = Map.groupBy(columns, ({ view }) => view);
  expect([...found.keys()].sort()).toEqual(views.toSorted());
  for (const [view, promised] of Object.entries(PROMISED)) {
    expect([view, found.get(view)?.map(({ column }) => column)]).toEqual([view, expect.arrayContaining([...promised])]);
  }
  const [function_] = await read(sql<{ columns: string[] }>`
    select proargnames[2:] as columns from pg_proc where pronamespace = 'bi'::regnamespace and proname = 'usage_as_of'
  `);
  expect(function_?.columns).toEqual(found.get("usage_filtered")?.map(({ column }) => column));
});

test("every view, column and function of bi has a comment", async () => {
  const uncommented = sql<{ name: string }>`
    select relname || coalesce('.' || attname, '') as name
    from pg_class c
    join lateral (
      select 0 as attnum, null::name as attname
      union all select attnum, attname from pg_attribute a where a.attrelid = c.oid and attnum > 0 and not attisdropped
    ) columns on true
    left join pg_description d on d.objoid = c.oid and d.classoid = 'pg_class'::regclass and d.objsubid = attnum
    where relnamespace = 'bi'::regnamespace and coalesce(length(d.description), 0) < 10
  `;
  expect(await names(uncommented)).toEqual([]);
  const functions = sql<{ name: string }>`
    select proname as name from pg_proc p where pronamespace = 'bi'::regnamespace and obj_description(p.oid, 'pg_proc') is null
  `;
  expect(await names(functions)).toEqual([]);
});

test("PUBLIC may call no function of bi and use no table or view of either schema", async () => {
  const opened = sql<{ name: string }>`
    select oid::regprocedure::text as name from pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner)))
    where pronamespace = 'bi'::regnamespace and grantee = 0
    union all
    select oid::regclass::text from pg_class, aclexplode(relacl)
    where relnamespace in ('bi'::regnamespace, 'usage_export'::regnamespace) and grantee = 0
  `;
  expect(await names(opened)).toEqual([]);
});

// A function that is stored parsed runs what Postgres found when it was created: no name is looked up in the reader's search path or in
// pg_temp. Views are always stored like that.
test("the functions of both schemas are stored parsed", async () => {
  const unparsed = sql<{ name: string }>`
    select oid::regprocedure::text as name from pg_proc
    where pronamespace in ('bi'::regnamespace, 'usage_export'::regnamespace) and prosqlbody is null and prorettype <> 'trigger'::regtype
  `;
  expect(await names(unparsed)).toEqual([]);
});

test("only bi.changed_days and the functions behind budgets and forecasts run with their owner's rights", async () => {
  const privileged = sql<{ name: string }>`
    select oid::regprocedure::text || ' ' || proconfig[1] as name from pg_proc
    where pronamespace in ('bi'::regnamespace, 'usage_export'::regnamespace) and prosecdef
    order by name
  `;
  expect(await names(privileged)).toEqual([
    "bi.changed_days(timestamp with time zone) search_path=pg_catalog, pg_temp",
    "usage_export.budget_use(text,date,date,date) search_path=pg_catalog, pg_temp",
    "usage_export.project_forecast(text) search_path=pg_catalog, pg_temp",
  ]);
  await expect(asReader("select usage_export.project_forecast('x')")).rejects.toThrow("permission denied for schema");
});

async function asReader(statement: string): Promise<unknown> {
  return db.transaction().execute(async (tx) => {
    await sql`set local role usage_reader`.execute(tx);
    return (await sql.raw(statement).execute(tx)).rows;
  });
}

test("the reader may read every view, bi.usage_as_of and bi.usage_change", async () => {
  const { seriesId } = await newSeries(db, "endpoint", { windowDays: 7, usage: { "2026-03-16": { listen: "1" } } });
  await store(db, seriesId, { "2026-03-16": { listen: "2" } });
  await failOn(db, seriesId, ["2026-03-17"]);
  await startRun(db, { runId: crypto.randomUUID(), kind: "export", job: "nightly", trigger: "manual" });
  for (const view of views) await asReader(`select * from bi.${view}`);
  expect(await asReader("select usage_date::text from bi.changed_days('-infinity') where project_id <> ''")).toEqual([
    { usage_date: "2026-03-16" },
  ]);
  expect(await asReader("select endpoint, requests from bi.usage_by_endpoint")).toEqual([
    { endpoint: "listen", requests: "2" },
  ]);
  expect(await asReader("select group_value, requests from bi.usage_as_of(now())")).toEqual([
    { group_value: "listen", requests: "2" },
  ]);
  expect(
    await asReader(`
      select part, group_value, change from bi.usage_change('2026-03-16', '2026-03-16', groupings => '{endpoint}')
    `),
  ).toEqual([{ part: "days not compared", group_value: null, change: "2" }]);
});

test("the reader has no other privilege in schemas bi and usage_export", async () => {
  const relations = sql<{ name: string }>`
    select oid::regclass::text as name from pg_class
    where relnamespace in ('bi'::regnamespace, 'usage_export'::regnamespace) and relkind in ('r', 'v', 'm', 'p')
      and (has_table_privilege('usage_reader', oid, 'insert, update, delete, truncate, references, trigger')
        or (relnamespace = 'usage_export'::regnamespace and has_table_privilege('usage_reader', oid, 'select')))
  `;
  expect(await names(relations)).toEqual([]);
  const schemas = sql<{ name: string }>`
    select nspname as name from pg_namespace
    where has_schema_privilege('usage_reader', oid, 'create') or (nspname = 'usage_export' and has_schema_privilege('usage_reader', oid, 'usage'))
  `;
  expect(await names(schemas)).toEqual([]);
});
