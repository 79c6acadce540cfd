// Writes every view of schema bi in every format and reads it back, with names that are hard to encode.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { storeBalances } from "../../src/db/balances.ts";
import { storeBudgets } from "../../src/db/budgets.ts";
import { readDumpRows, withDumpTransaction } from "../../src/db/dump.ts";
import { requestRecorder } from "../../src/db/jobs/run-requests.ts";
import { startRun } from "../../src/db/jobs/runs.ts";
import { storeListedKeys } from "../../src/db/keys/listed-keys.ts";
import { storePrices } from "../../src/db/prices.ts";
import { storeReading } from "../../src/db/projects.ts";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import { markDue, registerSeries, seriesIdOf } from "../../src/db/usage/series.ts";
import { csvOf, withoutFormula } from "../../src/dump/csv.ts";
import { jsonLinesOf } from "../../src/dump/encode.ts";
import { parquetOf } from "../../src/dump/parquet.ts";
import type { ColumnKind, Row, View } from "../../src/dump/view.ts";
import { addDays, dayOf } from "../../src/usage/days.ts";
import { type Filter, USAGE_DIMENSIONS } from "../../src/usage/series.ts";
import { readCsv } from "../dump/read-csv.ts";
import { readParquet } from "../dump/read-parquet.ts";
import { HOSTILE_TEXTS, inBatches, textOf } from "../dump/sample-view.ts";
import { testDatabase } from "../support/database.ts";
import { viewsOf } from "./dump-behaviour.ts";
import { newIntent, newKey, newRotation } from "./keys/written-ledger.ts";
import { billed } from "./stored-billing.ts";
import { configured, newProject, newSeries, rowOf, rowsOn, store, total, totalRow } from "./stored-usage.ts";

const { db } = await testDatabase();

const TEXTS = [...HOSTILE_TEXTS, "=1+1", "-1", "+1", "@SUM(1)", "\t=1", "＝1", "a;=1"];
const project = { ...newProject(), name: `=cmd|' /C calc'!A0 "${"x".repeat(500)}" \u202E🦊\n;@x` };

await fill();
const views = await viewsOf(db);

/** Stores rows for every view. */
async function fill(): Promise<void> {
  const { job, key } = await newRotation(db, { project: { id: project.id, name: project.name } });
  const intent = newIntent();
  await key(intent, "active");
  const { apiKeyId } = newKey(intent);
  await storeListedKeys(db, project.id, [{ apiKeyId, comment: "=1+1", scopes: ["member"], tags: ["=b", '"a"'] }]);
  const listed = TEXTS.map((name, i) => ({ id: `p${i}`, name }));
  await storeReading(db, { list: "env =KEY", listed, readAt: new Date() });
  const runId = randomUUID();
  await startRun(db, { runId, kind: "export", job: job.name, trigger: "manual" });

  const { seriesId: totalId } = await newSeries(db, "none", { project, windowDays: 2 });
  const recorder = requestRecorder(db, runId);
  const failure = { outcome: "failed", tookMs: 12, rowsChanged: 0, code: "rejected", error: '=no, "1"' } as const;
  recorder.add({ seriesId: totalId, window: { start: "2026-03-16", end: "2026-03-17" }, ...failure, endedMs: 0 });
  await recorder.flush();
  const extra = '{"=metric":0.10,"z":123456789012345678901234567890}';
  for (const hours of ["1", "0.0002777777777777778"]) {
    const row = totalRow({ hours, requests: "12" }, hours === "1" ? null : extra);
    await store(db, totalId, [rowsOn("2026-03-17", [row])], { grouping: "none" });
  }
  for (const dimension of USAGE_DIMENSIONS) {
    const { seriesId } = await newSeries(db, dimension, { project });
    const values =
      dimension === "tags" ? TEXTS.map((text) => [text]) : dimension === "accessor" ? [...TEXTS, apiKeyId] : TEXTS;
    const rows = values.map((value) => rowOf(value, { hours: "0.1", tokens_in: "99999999999999" }, null, dimension));
    await store(db, seriesId, [rowsOn("2026-03-17", rows)], { grouping: dimension });
  }
  const summed = await newSeries(db, "none", { project: newProject() });
  const running = { ...total("2026-03-17", { hours: "0.1", requests: "99999999999999" }), undated: true };
  await store(db, summed.seriesId, [running], { grouping: "none", ownDays: true });
  await fillBilling();
  const filter = { name: "=filter", features: { diarize: "true" }, dimensions: {} };
  // This series is registered last: the earlier ones are then no longer configured, and none of their days is due.
  const { seriesId: filteredId } = await newSeries(db, "endpoint", { project, filter });
  await store(db, filteredId, [
    rowsOn(
      "2026-03-17",
      TEXTS.map((text) => rowOf(text, "1")),
    ),
  ]);
  // bi.usage_forecast is of the last 100 days.
  const yesterday = addDays(dayOf(new Date()), -1);
  await store(db, filteredId, [rowsOn(yesterday, [rowOf("=1+1", "1")])], { grouping: "endpoint" });
  const reason = "=1+1\nthe service was away";
  await recordFailure(db, { seriesId: filteredId, days: ["2026-03-18"], fetchNo: await nextFetchNo(db), reason });
  const due = { start: "2026-03-17", end: "2026-03-18" };
  await markDue(db, [filteredId], { first: "2026-03-17", oldest: due, through: "2026-03-18" });
  const terms = { currency: "USD", digits: 2, per: "hour", price: "0.1", tiers: [], volume: "account" } as const;
  await storePrices(db, [{ metric: "hours", model: "=1+1", conditions: {}, from: "2026-01-01", ...terms }], "=1+1");
  await fillFindings(filteredId);
  // As if each day had been read soon after its end, so that bi.restatement_curve has rows.
  await sql`update usage_export.slice set closed_at = usage_date + 1 where fetch_no > 0`.execute(db);
  await sql`update usage_export.snapshot_row set last_changed_at = usage_date + revision`.execute(db);
  await sql`
    update usage_export.superseded_row
    set last_changed_at = usage_date + revision, superseded_at = usage_date + revision + 1
  `.execute(db);
}

/** What is billed, also under a filter, the balances, and usage under a filter for one key. */
async function fillBilling(): Promise<void> {
  const grouping = "accessor,deployment,line_item,tags";
  const all: Filter = { name: "all", features: {}, dimensions: {} };
  const ofKey: Filter = { name: "=key", features: {}, dimensions: { accessor: "=1+1" } };
  const bills = configured(project, grouping, { source: "billing", filter: all });
  const single = (["none", "accessor", "deployment", "line_item", "tags"] as const).map((one) =>
    configured(project, one, { source: "billing", filter: all }),
  );
  const filtered = configured(project, "none", { source: "billing", filter: ofKey });
  const byModel = configured(project, "model", { filter: ofKey });
  const ids = await registerSeries(db, [bills, ...single, filtered, byModel]);
  for (const { series } of [bills, ...single, filtered]) {
    const dimensions = { accessor: "=1+1", deployment: "@SUM(1)", line_item: "streaming::=1", tags: ["-1", '"a"'] };
    const slices = [billed("2026-03-17", series.grouping, [["-0.000000000000000000000001", dimensions]])];
    await store(db, seriesIdOf(ids, series), slices, { grouping: series.grouping });
  }
  const models = [rowsOn("2026-03-17", [rowOf("=model", { hours: "0.1" }, null, "model")])];
  await store(db, seriesIdOf(ids, byModel.series), models, { grouping: "model" });
  const balance = { balanceId: "=balance", amount: "0.10", units: "usd", purchaseOrderId: "+1" };
  await storeBalances(db, project, [balance]);
}

async function fillFindings(seriesId: number): Promise<void> {
  const [name, of] = ["=budget", { project: project.name, projects: [project] }];
  const use = { scope: "all", scopeValue: undefined, metric: "hours", currency: undefined, amount: "0.3" } as const;
  await storeBudgets(db, [{ name, ...of, ...use, period: "day", thresholds: ["80.5"], from: "2026-03-17" }], "=1+1");
  await sql`
    insert into usage_export.judged_day (project_id, filter_key, usage_date, series_id, verdict, metric, amount, expected)
    values (${project.id}, '=filter', '2026-03-17', ${seriesId}, 'high', 'hours', 0.10, 0.01)
  `.execute(db);
}

async function rowsOf(view: View): Promise<readonly Row[]> {
  const batches = await withDumpTransaction(db, new AbortController().signal, (tx) =>
    Array.fromAsync(readDumpRows(tx, view, {})),
  );
  return batches.flat();
}

function mapValues({ columns }: View, rows: readonly Row[], change: (kind: ColumnKind, text: string) => string) {
  return rows.map((row) => row.map((text, at) => (text === null ? null : change(columns[at]?.kind ?? "text", text))));
}

test("every view has rows, and all of them are dumped", async () => {
  const empty: string[] = [];
  for (const view of views) {
    const { rows } = await sql<{
      count: number;
    }>`select count(*)::integer as count from ${sql.id("bi", view.name)}`.execute(db);
    expect([view.name, (await rowsOf(view)).length]).toEqual([view.name, rows[0]?.count]);
    if (rows[0]?.count === 0) empty.push(view.name);
  }
  expect(empty).toEqual([]);
});

test("two dumps of the same rows are the same bytes, whatever the rows' order in the table", async () => {
  const text = async (view: View) => textOf(csvOf(view, inBatches(await rowsOf(view))));
  const dumps = () => Promise.all(views.filter(({ name }) => name !== "api_keys").map(text));
  const before = await dumps();
  await sql`update usage_export.snapshot_row set hours = hours where hours is not null and group_id % 2 = 0`.execute(
    db,
  );
  await sql`update usage_export.slice set rows = rows where series_id % 2 = 0`.execute(db);
  expect(await dumps()).toEqual(before);
});

describe.each(views.map((view) => [view.name, view] as const))("bi.%s", (_name, view) => {
  test("is read back from CSV, with an apostrophe before every text that could be a formula", async () => {
    const rows = await rowsOf(view);
    const [names, ...records] = readCsv((await textOf(csvOf(view, inBatches(rows)))).slice(1));
    expect(names?.map(({ text }) => text)).toEqual(view.columns.map(({ name }) => name));
    const isPlain = (kind: ColumnKind) => kind !== "text" && kind !== "json";
    expect(records.map((record) => record.map(({ text, quoted }) => (text === "" && !quoted ? null : text)))).toEqual(
      mapValues(view, rows, (kind, text) => (isPlain(kind) ? text : withoutFormula(text))),
    );
    for (const record of records) {
      for (const { text, quoted } of record)
        if (!quoted) expect(text).toMatch(/^(?:-?[\d.]+|[\d-]{10}(?:T[\d:.]+Z)?)?$/);
    }
  });

  test("is read back from JSON", async () => {
    const rows = await rowsOf(view);
    const lines = (await textOf(jsonLinesOf(view, inBatches(rows)))).split("\n").slice(0, -1);
    const keepDigits = (_name: string, value: unknown, context?: { source?: string }) =>
      typeof value === "number" ? `${context?.source}` : value;
    expect(lines.map((line) => Object.values(JSON.parse(line, keepDigits)))).toEqual(
      rows.map((row) =>
        row.map((text, at) =>
          text !== null && view.columns[at]?.kind === "json" ? JSON.parse(text, keepDigits) : text,
        ),
      ),
    );
  });

  test("is read back from Parquet", async () => {
    const rows = await rowsOf(view);
    const { rows: found } = await readParquet(view, parquetOf(view, inBatches(rows)));
    const isFraction = (text: string) => text.includes(".");
    expect(found).toEqual(
      mapValues(view, rows, (kind, text) =>
        kind === "number" && isFraction(text) ? text.replace(/\.?0+$/, "") : text,
      ),
    );
  });
});
