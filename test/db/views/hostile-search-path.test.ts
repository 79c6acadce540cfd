// The search path of the database begins with a schema in which someone else has created functions and operators.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { databaseNow, openPostgres } from "../../../src/db/connection/database.ts";
import { endProjects, finishRun, heartbeatRun, startRun } from "../../../src/db/jobs/runs.ts";
import { NO_COUNTS } from "../../../src/usage/counts.ts";
import { testDatabase } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import { coverageOf, failOn, newSeries, nextFetchNo, setDue, shown, store } from "../stored-usage.ts";

const { url, directUrl } = await testDatabase();

const TYPES = ["text", "integer", "bigint", "date", "boolean", "uuid"];
const operators = TYPES.flatMap((type) =>
  ["=", "<>", "<", ">", "<=", ">="].map(
    (operator) => `create operator evil.${operator} (leftarg = ${type}, rightarg = ${type}, function = evil.never);`,
  ),
);
// Not through the pooler: its connections are opened once and shared, and must have this search path from the beginning.
await runStatement(
  directUrl,
  `create schema evil;
   create function evil.now() returns timestamptz language sql as 'select timestamptz ''2001-01-01''';
   create function evil.clock_timestamp() returns timestamptz language sql as 'select timestamptz ''2001-01-01''';
   create function evil.nextval(text) returns bigint language sql as 'select 7::bigint';
   create function evil.nextval(regclass) returns bigint language sql as 'select 7::bigint';
   create function evil.unnest(text[]) returns setof text language sql as 'select ''stolen''';
   create function evil.set_config(text, text, boolean) returns text language sql as 'select ''ignored''';
   ${TYPES.map((type) => `create function evil.never(${type}, ${type}) returns boolean language sql as 'select false';`).join("\n")}
   ${operators.join("\n")}`,
);
const name = new URL(url).pathname.slice(1);
await runStatement(directUrl, `alter database ${name} set search_path = evil, pg_catalog`);

test("the functions and operators of a hostile schema do not change what is stored", async () => {
  await using db = openPostgres(url);
  expect((await databaseNow(db)).getFullYear()).toBeGreaterThan(2001);
  const { project, seriesId } = await newSeries(db, "endpoint", { windowDays: 7 });
  await setDue(db, [seriesId], "2026-03-16", "2026-03-17");
  const runId = randomUUID();
  await startRun(db, { runId, kind: "export", job: "nightly", trigger: "manual" }, [{ projectId: "p", planned: 1 }]);
  await heartbeatRun(db, runId);
  await store(db, seriesId, { "2026-03-16": { listen: "1", speak: "1" } }, { runId });
  await store(db, seriesId, { "2026-03-16": { listen: "2" } }, { runId });
  await failOn(db, seriesId, ["2026-03-17"]);
  await endProjects(db, [{ runId, projectId: "p", counts: { ...NO_COUNTS, failed: 1 }, error: "down" }]);
  await finishRun(db, runId, "failed", "down");
  expect(await nextFetchNo(db)).not.toBe(await nextFetchNo(db));

  await runStatement(directUrl, `alter database ${name} reset search_path`);
  await using clean = openPostgres(directUrl);
  expect(await shown(clean, project)).toEqual({ "2026-03-16": { listen: "2" } });
  expect(await coverageOf(clean, project)).toMatchObject([
    { usage_date: "2026-03-16", status: "complete", rows: 1 },
    { usage_date: "2026-03-17", status: "failed", error: "down" },
  ]);
  const { rows } = await sql`
    select run_id, status, slices_failed, finished_at > '2002-01-01' as "hasTime",
      (select min(attempted_at) > '2002-01-01' from usage_export.slice) as "haveTimes"
    from bi.runs
  `.execute(clean);
  expect(rows).toEqual([{ run_id: runId, status: "failed", slices_failed: 1, hasTime: true, haveTimes: true }]);
});
