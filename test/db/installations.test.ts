// Two configurations on one database: what one registers, plans, claims or retires is none of the other's business, and a project that
// both export is counted once.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { pino } from "pino";
import { expect, test } from "vitest";
import { storeBudgets, watchedBudgets } from "../../src/db/budgets.ts";
import { type Database, openPostgres } from "../../src/db/connection/database.ts";
import { assignInstallation } from "../../src/db/connection/handle.ts";
import { inTransaction, readSnapshot } from "../../src/db/connection/transaction.ts";
import { readCompleteness } from "../../src/db/health.ts";
import { type JobId, lockJob, pauseJob, registerJobs, storedJobs } from "../../src/db/jobs/jobs.ts";
import { openQueue, queueDepths } from "../../src/db/jobs/queue.ts";
import { addRequests } from "../../src/db/jobs/queued-requests.ts";
import { endRunsWithoutJobs, insertRun, recordQueuedRequests, runningRuns } from "../../src/db/jobs/runs.ts";
import { heartbeatWorker, storedWorkers } from "../../src/db/jobs/workers.ts";
import { recordEvent } from "../../src/db/keys/events.ts";
import { requireOwnRotations, takeLease } from "../../src/db/keys/lease.ts";
import { recentKeyEvents } from "../../src/db/keys/status.ts";
import { claimNotification, markSent, readLastSent } from "../../src/db/notifications.ts";
import { storePrices } from "../../src/db/prices.ts";
import { storedSnoozes, storeSnooze } from "../../src/db/snoozes.ts";
import { markDue, markNextDue, registerIfChanged, registerSeries, seriesIdOf } from "../../src/db/usage/series.ts";
import type { Budget } from "../../src/usage/budgets.ts";
import { addDays, dayOf } from "../../src/usage/days.ts";
import type { ConfiguredSeries } from "../../src/usage/plan.ts";
import { testDatabase } from "../support/database.ts";
import { configured, newProject, slice, store } from "./stored-usage.ts";

const { db: east, url } = await testDatabase();
// The other one keeps the name that every configuration has without `installation`.
const west = assignInstallation(openPostgres(url), "west");

const YESTERDAY = addDays(dayOf(new Date()), -1);
const JOB: JobId = { kind: "export", name: "nightly" };

/** The active series as one installation sees them. */
async function active(db: Database): Promise<readonly string[]> {
  const { series } = await readSnapshot(db, (tx) => readCompleteness(tx, 1000));
  return series.flatMap((one) => (one.isActive ? [`${one.project} ${one.grouping}`] : [])).sort();
}

async function viewed(view: string, { project }: ConfiguredSeries["series"], columns: string) {
  const { rows } = await sql`
    select ${sql.raw(columns)} from ${sql.table(`bi.${view}`)} where project_id = ${project.id}
  `.execute(east);
  return rows;
}

async function storedSeries({ project }: ConfiguredSeries["series"]) {
  const { rows } = await sql<object>`
    select project, installations, window_days, next_due_at::date::text as next, retired_at is not null as retired
    from usage_export.series where project_id = ${project.id}
  `.execute(east);
  return rows[0];
}

test("registering the series of one installation retires none of the other's", async () => {
  const [one, other] = [configured(newProject(), "none"), configured(newProject(), "none")];
  await registerSeries(east, [one]);
  await registerSeries(west, [other]);
  expect(await active(east)).toEqual([`${one.series.project.name} none`]);
  expect(await active(west)).toEqual([`${other.series.project.name} none`]);
  expect((await registerIfChanged(east, [one])).isChanged).toBe(false);
  await registerSeries(east, []);
  expect([await active(east), await active(west)]).toEqual([[], [`${other.series.project.name} none`]]);
});

test("a series that both export is one, with one row a day, until neither exports it", async () => {
  const project = newProject();
  const inEast = configured(project, "none", { windowDays: 3 });
  const inWest = configured(project, "none", { windowDays: 7 });
  const id = seriesIdOf(await registerSeries(east, [inEast]), inEast.series);
  expect(seriesIdOf(await registerSeries(west, [inWest]), inWest.series)).toBe(id);
  expect((await registerIfChanged(east, [inEast])).isChanged).toBe(false);
  await store(east, id, [slice(YESTERDAY, { listen: "5" })]);
  await store(west, id, [slice(YESTERDAY, { listen: "7" })]);
  expect(await viewed("usage_total", inEast.series, "requests")).toEqual([{ requests: "7" }]);
  expect(await viewed("coverage", inEast.series, "status, installations")).toEqual([
    { status: "complete", installations: "default, west" },
  ]);
  await inTransaction(east, (tx) => markNextDue(tx, [{ seriesId: id, at: new Date("2100-01-02T02:15:00Z") }]));
  await inTransaction(west, (tx) => markNextDue(tx, [{ seriesId: id, at: new Date("2100-01-05T02:15:00Z") }]));
  expect(await storedSeries(inEast.series)).toMatchObject({
    installations: ["default", "west"],
    window_days: 7,
    next: "2100-01-02",
    retired: false,
  });

  await registerSeries(east, []);
  expect(await storedSeries(inEast.series)).toMatchObject({
    installations: ["west"],
    next: "2100-01-05",
    retired: false,
  });
  expect(await viewed("coverage", inEast.series, "installations, active")).toEqual([
    { installations: "west", active: true },
  ]);
  await registerSeries(east, [inEast]);
  await registerSeries(west, []);
  expect(await storedSeries(inEast.series)).toMatchObject({
    installations: ["default"],
    window_days: 3,
    retired: false,
  });
  await registerSeries(east, []);
  expect(await storedSeries(inEast.series)).toMatchObject({ installations: [], retired: true });
  expect(await viewed("coverage", inEast.series, "installations, active")).toEqual([
    { installations: null, active: false },
  ]);
});

test("the schedule of an installation that has stopped makes no day due that the other one reads later", async () => {
  const one = configured(newProject(), "none", { windowDays: 3 });
  const id = seriesIdOf(await registerSeries(east, [one]), one.series);
  await registerSeries(west, [one]);
  const dayBefore = addDays(YESTERDAY, -1);
  await store(east, id, [slice(dayBefore, { listen: "5" })]);
  await markDue(east, [id], { first: dayBefore, oldest: { start: dayBefore, end: dayBefore }, through: dayBefore });
  const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000);
  const plan = (db: Database, at: Date) => inTransaction(db, (tx) => markNextDue(tx, [{ seriesId: id, at }]));
  const gaps = () => viewed("coverage_gaps", one.series, "status");
  await plan(west, inHours(-3));
  await plan(east, inHours(6));
  // It may only be late.
  expect(await gaps()).toEqual([{ status: "missing" }]);
  await plan(west, inHours(-27));
  await plan(east, inHours(6));
  expect(await gaps()).toEqual([]);
  await plan(east, inHours(-27));
  expect(await gaps()).toEqual([{ status: "missing" }]);
});

test("if both name a project differently, a start changes nothing, and the name that is changed last is shown", async () => {
  const project = newProject();
  const named = (name: string) => configured({ ...project, name }, "none");
  const name = async () => (await storedSeries(named("any").series)) as { readonly project: string };
  await registerSeries(east, [named("first")]);
  await registerSeries(west, [named("second")]);
  await registerSeries(east, [named("first")]);
  expect(await name()).toMatchObject({ project: "first" });
  await registerSeries(west, [named("third")]);
  expect(await name()).toMatchObject({ project: "third" });
  await registerSeries(east, [named("first")]);
  expect(await name()).toMatchObject({ project: "third" });
  await registerSeries(west, []);
  await registerSeries(east, [named("first")]);
  expect(await name()).toMatchObject({ project: "first" });
});

test("a filter's name that means other conditions in the other installation is refused", async () => {
  const project = newProject();
  const filtered = (endpoint: string) =>
    configured(project, "none", { filter: { name: "narrow", features: {}, dimensions: { endpoint } } });
  await registerSeries(east, [filtered("listen")]);
  await expect(registerSeries(west, [filtered("speak")])).rejects.toThrow(
    /^filter "narrow" of project "project .*" has other conditions in the installation "default" on this database: expected another name here/,
  );
  expect(await active(east)).toEqual([`${project.name} none`]);
  await registerSeries(east, []);
  await registerSeries(west, [filtered("speak")]);
});

test("jobs and their runs, pauses, workers, snoozes and notifications of the same names are apart", async () => {
  for (const db of [east, west]) await registerJobs(db, [JOB]);
  await pauseJob(east, JOB, { why: "moving house", by: "me" });
  expect((await inTransaction(west, (tx) => lockJob(tx, JOB)))?.pause).toBeUndefined();
  expect((await storedJobs(west)).map(({ name }) => name)).toEqual([JOB.name]);

  const scheduledFor = new Date("2026-03-16T02:15:00Z");
  const start = (db: Database) =>
    inTransaction(db, (tx) =>
      insertRun(tx, { runId: randomUUID(), kind: "export", job: JOB.name, trigger: "schedule", scheduledFor }),
    );
  expect([await start(east), await start(east), await start(west)]).toEqual([true, false, true]);
  const running = (db: Database) => inTransaction(db, (tx) => runningRuns(tx, "export", JOB.name));
  expect([await running(east), await running(west)]).toMatchObject([[{}], [{}]]);

  await heartbeatWorker(east, { workerId: randomUUID(), host: "east-1", pid: 1, version: "1" });
  expect(await storedWorkers(west)).toEqual([]);

  await storeSnooze(east, { name: "gaps", until: new Date(Date.now() + 60_000), by: "ann" });
  expect(await storedSnoozes(west)).toEqual([]);

  const claim = (await claimNotification(east, "gaps nightly", undefined)) ?? "";
  await markSent(east, { subject: "gaps nightly", state: "wrong" }, claim);
  expect([...(await readLastSent(west)).keys()]).toEqual([]);
  expect(await claimNotification(west, "gaps nightly", undefined)).toBeDefined();
});

test("no queue job of the other installation is claimed, counted or ended, and the same days can be asked for by both", async () => {
  const log = pino({ level: "silent" });
  const queues = { east: await openQueue(east, log), west: await openQueue(west, log) };
  const start = async (db: Database, name: keyof typeof queues) => {
    const [runId, chunkId] = [randomUUID(), randomUUID()];
    await inTransaction(db, async (tx) => {
      await insertRun(tx, { runId, kind: "export", job: "queued", trigger: "manual" });
      const added = await addRequests(tx, runId, [{ key: "1 2026-03-16", chunkId, position: 0, request: {} }]);
      expect([...added]).toEqual(["1 2026-03-16"]);
      await recordQueuedRequests(tx, runId, { requests: 1, slices: 1 });
      await queues[name].add(tx, "usage_request", [{ key: chunkId, data: { runId, chunkId }, priority: 0 }]);
    });
  };
  const waiting = async (db: Database) =>
    (await queueDepths(db)).find(({ queue, state }) => queue === "usage_request" && state === "waiting")?.jobs;
  try {
    await start(east, "east");
    expect([await waiting(east), await waiting(west)]).toEqual([1, 0]);
    expect(await queues.west.claim("usage_request", 10)).toEqual([]);
    await start(west, "west");
    expect(await endRunsWithoutJobs(west)).toEqual([]);
    const [claimed, ...others] = await queues.west.claim("usage_request", 10);
    expect(others).toEqual([]);
    if (!claimed) throw new Error("nothing to claim");
    await queues.west.release(claimed);
    await sql`delete from usage_export_queue.job where name = 'usage_request'`.execute(east);
    // Its queue was emptied: that ends its run, and not the other's.
    expect(await endRunsWithoutJobs(west)).toEqual([]);
    expect(await endRunsWithoutJobs(east)).toMatchObject([{ job: "queued", status: "failed" }]);
    expect(await queues.west.claim("usage_request", 10)).toHaveLength(1);
  } finally {
    await queues.east.stop();
    await queues.west.stop();
  }
});

test("budgets of the same name are apart, and one that starts without it ends none of the other's", async () => {
  const project = newProject();
  const budget = (amount: string): Budget => ({
    ...{ name: "limit", project: project.name, projects: [project], scope: "all", scopeValue: undefined },
    ...{ metric: "requests", currency: undefined, amount, period: "month", thresholds: ["80"], from: undefined },
  });
  await storeBudgets(east, [budget("10")], "the test");
  await storeBudgets(west, [budget("20")], "the test");
  const one = configured(project, "none", { windowDays: 3 });
  const id = seriesIdOf(await registerSeries(east, [one]), one.series);
  await store(east, id, [slice(dayOf(new Date()), { listen: "4" })]);
  await storeBudgets(west, [], "the test");
  await storeBudgets(west, [budget("20")], "the test");
  const amounts = async (db: Database) =>
    (await readSnapshot(db, (tx) => watchedBudgets(db, tx))).map(({ name, amount }) => [name, amount]);
  expect([await amounts(east), await amounts(west)]).toEqual([[["limit", "10"]], [["limit", "20"]]]);
  const { rows } = await sql`
    select installation, budget, used, amount from bi.budgets where project = ${project.name} order by installation
  `.execute(east);
  expect(rows).toEqual([
    { installation: "default", budget: "limit", used: "4", amount: "10" },
    { installation: "west", budget: "limit", used: "4", amount: "20" },
  ]);
});

test("a rotation of the other installation is not taken, as its keys would be replaced", async () => {
  await takeLease(east, "exporter", "the test");
  const refused = 'the rotation "exporter" is one of the installation "default" on this database';
  await expect(requireOwnRotations(west, ["mine", "exporter"])).rejects.toThrow(refused);
  await expect(takeLease(west, "exporter", "the test")).rejects.toThrow(refused);
  await requireOwnRotations(east, ["exporter"]);
});

test("the newest events of keys are those of the own rotations", async () => {
  await takeLease(east, "events-east", "the test");
  const event = {
    rotation: "events-east",
    intentId: undefined,
    event: "fallback",
    actor: "the test",
    reason: "refused",
  };
  await recordEvent(east, event);
  expect(await recentKeyEvents(east, 10)).toMatchObject([{ rotation: "events-east" }]);
  expect(await recentKeyEvents(west, 10)).toEqual([]);
});

test("a price that the other installation has otherwise is refused, and the same price is no change", async () => {
  await registerSeries(east, [configured(newProject(), "model")]);
  const price = (amount: string) => ({
    ...({
      metric: "hours",
      model: "nova-3",
      conditions: {},
      currency: "USD",
      digits: 2,
      per: "1",
      price: amount,
    } as const),
    ...({ tiers: [], minimum: undefined, volume: "account", from: "2026-01-01", until: undefined } as const),
  });
  expect((await storePrices(east, [price("0.5")], "the test")).added).toHaveLength(1);
  expect((await storePrices(west, [price("0.5")], "the test")).added).toEqual([]);
  await expect(storePrices(west, [price("0.7")], "the test")).rejects.toThrow(
    'prices: the installation "default" on this database has another price of hours for "nova-3"',
  );
  // It exports nothing any more.
  await registerSeries(east, []);
  expect((await storePrices(west, [price("0.7")], "the test")).replaced).toHaveLength(1);
});
