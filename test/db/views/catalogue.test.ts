// What a BI tool finds: the views with their columns and comments, and the privileges of their reader.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { startRun } from "../../../src/db/jobs/runs.ts";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import { testDatabase } from "../../support/database.ts";
import { newSeries, slice, store } from "../stored-usage.ts";

const { db } = await testDatabase();

const METRICS = ["hours", "total_hours", "agent_hours", "tokens_in", "tokens_out", "tts_characters", "requests"];
const ROW = [...METRICS, "extra_metrics", "finality", "revision", "first_seen_at", "last_changed_at"];
const SERIES = ["project_id", "project", "usage_date"];
const FILTERED = [...SERIES, "grouping", "filter", "group_value", ...ROW];
const DIMENSIONS = ["accessor", "deployment", "endpoint", "feature_set", "model", "method", "tags"];
const COST = [
  "amount",
  "currency",
  "finality",
  "is_final",
  "fetched_at",
  "revision",
  "first_seen_at",
  "last_changed_at",
];
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

async function names(query: ReturnType<typeof sql<{ name: string }>>): Promise<string[]> {
  const { rows } = await query.execute(db);
  return rows.map(({ name }) => name);
}

const views = await names(sql`
  select relname as name from pg_class where relnamespace = 'bi'::regnamespace order by relname
`);

test("schema bi has the promised views, and nothing but views", async () => {
  expect(views).toEqual(expect.arrayContaining(Object.keys(PROMISED)));
  const others = sql<{ name: string }>`
    select relname as name from pg_class where relnamespace = 'bi'::regnamespace and relkind <> 'v'
  `;
  expect(await names(others)).toEqual([]);
});

test.each(Object.entries(PROMISED))("bi.%s has the promised columns", async (view, columns) => {
  const found = await names(sql`
    select column_name as name from information_schema.columns where table_schema = 'bi' and table_name = ${view}
  `);
  expect(found).toEqual(expect.arrayContaining([...columns]));
});

test("bi.usage_as_of has the columns of the filtered view, in its order", async () => {
  const { rows } = await sql<{ columns: string[] }>`
    select proargnames[2:] as columns from pg_proc where pronamespace = 'bi'::regnamespace and proname = 'usage_as_of'
  `.execute(db);
  const filtered = await names(sql`
    select column_name as name from information_schema.columns
    where table_schema = 'bi' and table_name = 'usage_filtered' order by ordinal_position
  `);
  expect(rows[0]?.columns).toEqual(filtered);
});

test("every view, column and function of bi has a comment", async () => {
  const silent = sql<{ name: string }>`
    select relname || coalesce('.' || attname, '') as name
    from pg_class c
    join lateral (
      select 0 as attnum, null::name as attname
      union all select attnum, attname from pg_attribute a where a.attrelid = c.oid and attnum > 0 and not attisdropped
    ) columns on true
    left join pg_description d on d.objoid = c.oid and d.classoid = 'pg_class'::regclass and d.objsubid = attnum
    where relnamespace = 'bi'::regnamespace and coalesce(length(d.description), 0) < 10
  `;
  expect(await names(silent)).toEqual([]);
  const functions = sql<{ name: string }>`
    select proname as name from pg_proc p where pronamespace = 'bi'::regnamespace and obj_description(p.oid, 'pg_proc') is null
  `;
  expect(await names(functions)).toEqual([]);
});

test("PUBLIC may call no function of bi and use no table or view of either schema", async () => {
  const open = sql<{ name: string }>`
    select oid::regprocedure::text as name from pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner)))
    where pronamespace = 'bi'::regnamespace and grantee = 0
    union all
    select oid::regclass::text from pg_class, aclexplode(relacl)
    where relnamespace in ('bi'::regnamespace, 'usage_export'::regnamespace) and grantee = 0
  `;
  expect(await names(open)).toEqual([]);
});

test("only bi.changed_days and the functions behind budgets and forecasts run with their owner's rights (security definer), with a fixed search path", async () => {
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

test("the reader may read every view, the past usage of bi.usage_as_of, and what changed by bi.usage_change", async () => {
  const { seriesId } = await newSeries(db, "endpoint", { windowDays: 7 });
  await store(db, seriesId, [slice("2026-03-16", { listen: "1" })]);
  await store(db, seriesId, [slice("2026-03-16", { listen: "2" })]);
  await recordFailure(db, { seriesId, days: ["2026-03-17"], fetchNo: await nextFetchNo(db), reason: "down" });
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

test.each([
  "select * from usage_export.slice",
  "select * from usage_export.visible_row",
  "select usage_export.finality('2026-03-17', 7, null, now())",
  "select nextval('usage_export.fetch_no')",
  "insert into bi.runs (run_id) values (gen_random_uuid())",
  "update bi.runs set job = 'another'",
  "delete from bi.runs",
  "create view bi.mine as select 1",
  "create table usage_export.mine ()",
])("the reader is refused: %s", async (statement) => {
  await expect(asReader(statement)).rejects.toMatchObject({
    // 55000: nobody can write to a view that adds rows up.
    code: expect.stringMatching(/^(42501|55000)$/),
  });
});
