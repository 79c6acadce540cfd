// Several processes write the same slices at once, on a Postgres server.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { afterAll, expect, test } from "vitest";
import { openPostgres } from "../../../src/db/connection/database.ts";
import type { Project } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { runStatement } from "../../support/postgres-admin.ts";
import {
  coverageOf,
  failOn,
  newProject,
  newSeries,
  nextFetchNo,
  shown,
  store,
  type Usage,
  view,
} from "../stored-usage.ts";

const ROUNDS = 40;
const DAYS = ["2026-03-15", "2026-03-16", "2026-03-17"];

const { db, url, waitingForLock } = await testDatabase();
// Another replica: a pool of its own.
const other = openPostgres(url);
afterAll(() => other.destroy());

/** An answer in which every number is `version`. Some of its groups are only in some versions. */
function answer(version: number, days: readonly string[] = DAYS): Usage {
  const groups = ["listen", "speak", "agent", `only ${version % 3}`];
  return Object.fromEntries(
    days.map((day) => [day, Object.fromEntries(groups.map((group) => [group, String(version)]))]),
  );
}

const statuses = async (project: Project) => (await coverageOf(db, project)).map(({ status }) => status);

test("of two answers for the same slices that are stored at once, only the later one is shown", async () => {
  const { project, seriesId } = await newSeries(db);
  for (let round = 1; round <= ROUNDS; round++) {
    const earlier = await nextFetchNo(db);
    const later = await nextFetchNo(db);
    await Promise.all([
      store(db, seriesId, answer(round), { fetchNo: earlier }),
      store(other, seriesId, answer(round + 1_000), { fetchNo: later }),
    ]);
    expect(await shown(db, project)).toEqual(answer(round + 1_000));
  }
});

test("two answers for new days that are stored at once both succeed, even if their days are in another order", async () => {
  for (let round = 1; round <= ROUNDS; round++) {
    const { project, seriesId } = await newSeries(db);
    await Promise.all([store(db, seriesId, answer(1)), store(other, seriesId, answer(2, DAYS.toReversed()))]);
    expect(await statuses(project)).toEqual(["complete", "complete", "complete"]);
  }
});

test("an answer and the failure of an earlier fetch, stored at once, leave the days complete", async () => {
  for (let round = 1; round <= ROUNDS; round++) {
    const { project, seriesId } = await newSeries(db);
    await store(db, seriesId, answer(1, DAYS.slice(round % 3, (round % 3) + 1)));
    const fetchNo = await nextFetchNo(db);
    await Promise.all([store(db, seriesId, answer(2)), failOn(other, seriesId, DAYS, { fetchNo })]);
    expect(await statuses(project)).toEqual(["complete", "complete", "complete"]);
  }
});

const databaseName = new URL(url).pathname.slice(1);
/** The product's lock_timeout. */
const LOCK_MS_MAX = 20_000;

test("a failure and an answer that waited for the same day do not deadlock", async () => {
  // Postgres then ends no deadlock before lock_timeout does, so a deadlock takes as long as lock_timeout.
  await runStatement(url, `alter database ${databaseName} set deadlock_timeout = '1min'`);
  await using replica = openPostgres(url);
  const { seriesId } = await newSeries(db);
  await store(db, seriesId, answer(1, DAYS.slice(0, 1)));
  const fetchNo = await nextFetchNo(db);
  const { done } = await db.transaction().execute(async (tx) => {
    await sql`select from usage_export.slice where series_id = ${seriesId} for update`.execute(tx);
    const failure = failOn(replica, seriesId, DAYS, { fetchNo });
    await expect.poll(waitingForLock).toHaveLength(1);
    const stored = store(replica, seriesId, answer(1));
    await expect.poll(waitingForLock).toHaveLength(2);
    return { done: Promise.all([failure, stored]) };
  });
  const startedMs = performance.now();
  await done;
  expect(performance.now() - startedMs).toBeLessThan(LOCK_MS_MAX);
});

// Slices are updated in no fixed order, so two transactions may deadlock.
test("after a deadlock the repeated transaction locks the slices first", async () => {
  // After this time Postgres ends a transaction that waits in a deadlock.
  await runStatement(url, `alter database ${databaseName} set deadlock_timeout = '300ms'`);
  await using replica = openPostgres(url);
  const both = { "2026-03-16": { listen: "1" }, "2026-03-17": { listen: "2" } };
  const { project, seriesId } = await newSeries(db, "endpoint", { usage: both });
  const update = (day: string) => sql`
    update usage_export.slice set fetched_at = now() where series_id = ${seriesId} and usage_date = ${day}
  `;
  const { done } = await db.transaction().execute(async (tx) => {
    // Postgres is to end the other transaction, not this one.
    await sql`set local deadlock_timeout = '10s'`.execute(tx);
    await update("2026-03-17").execute(tx);
    const done = store(replica, seriesId, both);
    await expect.poll(waitingForLock).toHaveLength(1);
    await update("2026-03-16").execute(tx);
    await expect.poll(waitingForLock).toEqual([{ query: expect.stringContaining("insert into usage_export.slice") }]);
    return { done };
  });
  expect(await done).toMatchObject({ slices: [{ decision: "unchanged" }, { decision: "unchanged" }], rowsChanged: 0 });
  expect(await shown(db, project)).toEqual(both);
});

test.each([
  { seemed: "unchanged", rows: { listen: "1" }, fetched: "before", decision: "replace", rowsChanged: 1, requests: "1" },
  { seemed: "unchanged", rows: { listen: "1" }, fetched: "after", decision: "stale", rowsChanged: 0, requests: "2" },
  { seemed: "doubtful", rows: {}, fetched: "after", decision: "stale", rowsChanged: 0, requests: "2" },
])(
  "an answer that seems $seemed waits for a transaction with numbers fetched $fetched it ($decision)",
  async ({ rows, fetched, decision, rowsChanged, requests }) => {
    const { project, seriesId } = await newSeries(db, "endpoint", { usage: { "2026-03-17": { listen: "1" } } });
    const { done } = await db.transaction().execute(async (tx) => {
      await sql`select from usage_export.slice where series_id = ${seriesId} for update`.execute(tx);
      const before = await nextFetchNo(db);
      const done = store(other, seriesId, { "2026-03-17": rows });
      await expect.poll(waitingForLock).toHaveLength(1);
      // Writes what another writer would: other numbers, their hash, and its own fetch number.
      const fetchNo = fetched === "before" ? before : await nextFetchNo(db);
      await sql`update usage_export.slice_row set requests = 2 where series_id = ${seriesId}`.execute(tx);
      await sql`
        update usage_export.slice set content_hash = 'another', fetch_no = ${fetchNo} where series_id = ${seriesId}
      `.execute(tx);
      return { done };
    });
    expect(await done).toEqual({ slices: [{ day: "2026-03-17", decision }], rowsChanged });
    expect(await shown(db, project)).toEqual({ "2026-03-17": { listen: requests } });
  },
);

test("a reader never sees a part of an answer", async () => {
  const { project, seriesId } = await newSeries(db);
  await store(db, seriesId, answer(0));
  let isWriting = true;
  const seen: string[] = [];
  const read = async () => {
    while (isWriting) {
      const rows = await view(other, "usage_by_endpoint", project);
      seen.push([...new Set(rows.map((row) => `${row.requests} of ${rows.length} rows`))].join(", "));
    }
  };
  const reading = read();
  for (let version = 1; version <= ROUNDS; version++) await store(db, seriesId, answer(version));
  isWriting = false;
  await reading;
  expect(seen.length).toBeGreaterThan(ROUNDS / 4);
  expect(seen.filter((versions) => !/^\d+ of 12 rows$/.test(versions))).toEqual([]);
});

test("twenty series with the same new groups are stored at once", async () => {
  const values = Object.fromEntries(Array.from({ length: 100 }, () => [randomUUID(), "1"]));
  const series = [];
  for (let i = 0; i < 20; i++) series.push(await newSeries(db, "endpoint", { project: newProject() }));
  await Promise.all(
    series.map(({ seriesId }, i) => store(i % 2 === 0 ? db : other, seriesId, { "2026-03-17": values })),
  );
  for (const { project } of series) expect(await shown(db, project)).toEqual({ "2026-03-17": values });
});
