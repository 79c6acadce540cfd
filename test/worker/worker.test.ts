// Which runs a worker starts at a tick, when it is live and ready, what it needs to start, and what it does with a queue job that was
// delivered twice or whose project its configuration lacks.

import { randomUUID } from "node:crypto";
import path from "node:path";
import { sql } from "kysely";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { App } from "../../src/app.ts";
import { type Config, loadConfig } from "../../src/config/config.ts";
import type { Database } from "../../src/db/connection/database.ts";
import { inTransaction } from "../../src/db/connection/transaction.ts";
import { openQueue } from "../../src/db/jobs/queue.ts";
import { endProjects, insertRun } from "../../src/db/jobs/runs.ts";
import { storeReading } from "../../src/db/projects.ts";
import { openReader } from "../../src/db/usage/due-slices.ts";
import { registerSeries } from "../../src/db/usage/stored-series.ts";
import { openWriter } from "../../src/db/usage/writer.ts";
import { openExportContext } from "../../src/jobs/context.ts";
import { withKnownProjects } from "../../src/jobs/discovery.ts";
import { NO_COUNTS } from "../../src/usage/counts.ts";
import { configuredSeries } from "../../src/usage/export-plan.ts";
import { handleProject } from "../../src/worker/handle-project.ts";
import { type Liveness, openLiveness } from "../../src/worker/liveness.ts";
import { watchProjects } from "../../src/worker/project-watch.ts";
import { tick } from "../../src/worker/tick.ts";
import { newWorker, runWorker } from "../../src/worker/worker.ts";
import { requireStartable, retryUntilReached, type WorkerContext } from "../../src/worker/worker-context.ts";
import { rotationTest } from "../cli/rotation/rotation-context.ts";
import { farSchedule, PROJECT_ID, smallConfig } from "../cli/small-config.ts";
import { parse } from "../config/sample-config.ts";
import { testDatabase } from "../support/database.ts";
import { startEmulator } from "../support/emulator.ts";
import { silentApp } from "../support/silent-app.ts";

const { db, read } = await testDatabase();
const { db: dbToDamage } = await testDatabase();
/** Plans once. Returns whether a run was started. */
const tickStartsRun = tick;

/** A worker with these projects, an export and a rotation of all of them. */
async function workerWith(name: string, ids: readonly string[]): Promise<WorkerContext> {
  const app = silentApp();
  const projects = ids.map((id) => ({ id, name: id, key: { env: "KEY" } }));
  const job = { name, schedule: farSchedule(), projects: ["*"] };
  const written = smallConfig("https://api.example.com", { projects, exports: [job] });
  const rotation = { ...job, name: `${name}-keys`, comment: "c", scopes: ["keys:write"] };
  const config = parse({ ...written, rotations: [rotation] });
  const seriesIds = await registerSeries(db, configuredSeries(config.exports));
  return { app, db, config, ids: seriesIds, queue: await openQueue(db, app.log) } as unknown as WorkerContext;
}

/** The runs of a job, the oldest first, each with its projects. */
async function projectsOfRuns(job: string): Promise<readonly string[]> {
  const { rows } = await sql<{ projects: string }>`
    select string_agg(project_id, ' ' order by project_id) as projects from usage_export.run join usage_export.run_project using (run_id)
    where job = ${job} group by run_id order by min(started_at)
  `.execute(db);
  return rows.map(({ projects }) => projects);
}

test("a new project gets its first key while another project of the rotation is still at work", async () => {
  await tick(await workerWith("slow", ["a"]));
  const withBoth = await workerWith("slow", ["a", "b"]);
  expect(await tickStartsRun(withBoth)).toBe(true);
  expect(await tickStartsRun(withBoth)).toBe(false);
  expect(await projectsOfRuns("slow-keys")).toEqual(["a", "b"]);
  // The earlier run, which was due by schedule, has the higher priority.
  const priorities = sql`select priority from usage_export_queue.job where name = 'rotation' order by data->>'projectId'`;
  expect((await priorities.execute(db)).rows).toEqual([{ priority: 1 }, { priority: 0 }]);
});

test("a new project whose run failed gets another at once, or after an hour if no worker knew the project", async () => {
  const context = await workerWith("newer", ["a"]);
  /** `planned` is the number of planned slices: 0 if no worker knew the project. */
  const failRuns = async (planned: 0 | 1) => {
    const runs = sql<{ runId: string }>`select run_id as "runId" from usage_export.run where job like 'newer%'`;
    const end = { projectId: "a", counts: { ...NO_COUNTS, planned }, error: "it has failed" };
    const ends = (await runs.execute(db)).rows.map(({ runId }) => ({ runId, ...end }));
    await endProjects(db, ends);
  };
  await tick(context);
  await failRuns(0);
  expect(await tickStartsRun(context)).toBe(false);
  await read(sql`update usage_export.run set started_at = started_at - interval '1 hour' where job like 'newer%'`);
  expect(await tickStartsRun(context)).toBe(true);
  await failRuns(1);
  expect(await tickStartsRun(context)).toBe(true);
  for (const job of ["newer", "newer-keys"]) expect(await projectsOfRuns(job)).toEqual(["a", "a", "a"]);
});

test("a scheduled run waits until an earlier late run has ended", async () => {
  const app = silentApp();
  const job = { schedule: farSchedule(), window: { days: 3 }, groupings: ["none", "model"] };
  const config = parse(smallConfig("https://api.example.com", { exports: [job] }));
  const ids = await registerSeries(db, configuredSeries(config.exports));
  const context = { app, db, config, ids, queue: await openQueue(db, app.log) } as unknown as WorkerContext;
  const runs = async () =>
    (await sql`select trigger, slices_planned from bi.runs where job = 'nightly'`.execute(db)).rows;
  expect(await tickStartsRun(context)).toBe(true);
  expect(await runs()).toEqual([{ trigger: "catchup", slices_planned: 6 }]);
  // Makes the run one of the day before, so that the job is due again.
  await sql`update usage_export.run set scheduled_for = scheduled_for - interval '1 day'`.execute(db);
  await sql`update usage_export.job set scheduled_through = scheduled_through - interval '1 day'`.execute(db);
  expect(await tickStartsRun(context)).toBe(false);
  await sql`update usage_export.run set status = 'ok', finished_at = now()`.execute(db);
  expect(await tickStartsRun(context)).toBe(true);
  expect(await runs()).toHaveLength(2);
});

test("a job that can't be planned does not keep another job from its run", async () => {
  const [well, unplannable] = [await workerWith("well", ["a"]), await workerWith("broken", ["unregistered"])];
  // The ids of `well` lack the series of the broken job.
  const config = { ...well.config, exports: [...unplannable.config.exports, ...well.config.exports] };
  expect(await tickStartsRun({ ...well, config })).toBe(true);
  expect([await projectsOfRuns("broken"), await projectsOfRuns("well")]).toEqual([[], ["a"]]);
});

const KEY = "0123456789abcdef0123456789abcdef";
const app = silentApp({ env: { ACCOUNT_KEY: KEY, DATABASE_URL: "postgres://127.0.0.1/usage" } });

test("a list of projects that hangs delays planning only briefly", async () => {
  const released = Promise.withResolvers<void>();
  await using emulator = await startEmulator({
    consoleKeys: [{ secret: KEY, projectId: "a", scopes: ["member"], isAccountKey: true }],
    fault: () => ({ kind: "hold", until: released.promise }),
  });
  const projects = [{ discover: true, key: { env: "ACCOUNT_KEY" } }];
  const written = smallConfig(emulator.url, { projects, exports: [{ projects: ["*"] }] });
  const config = await withKnownProjects(parse(written), db);
  let [changes, endedReadings] = [0, 0];
  const holdMs = 300;
  const mayPlan = watchProjects({ app, config, db, onChange: () => changes++, onRead: () => endedReadings++ }, holdMs);

  expect(await mayPlan()).toBe(false);
  await expect.poll(mayPlan).toBe(true);
  await expect.poll(() => emulator.requests.length).toBe(1);
  expect(changes).toBe(0);
  released.resolve();
  await expect.poll(() => endedReadings).toBe(1);

  expect([await mayPlan(), changes]).toEqual([false, 1]);
  // The worker has not taken up the changed list, so it goes on planning with the projects that it has.
  expect([await mayPlan(), changes]).toEqual([true, 2]);
  // After the database's clock was set back, the list is from the future: it is read again.
  const asked = emulator.requests.length;
  await sql`update usage_export.project_list set read_at = read_at + interval '2 hours'`.execute(db);
  // An unexpected error ends neither the worker nor the wait for the list.
  const brokenApp = { ...app, env: undefined as never };
  for (const each of [brokenApp, app])
    await watchProjects({ app: each, config, db, onChange: () => {}, onRead: () => endedReadings++ })();
  await expect.poll(() => endedReadings).toBe(3);
  expect(emulator.requests).toHaveLength(asked + 1);
});

type WorkerOptions = {
  readonly liveness?: Liveness;
  readonly onReload?: () => void;
  readonly onReady?: () => Promise<void>;
};

/** Runs a worker until the app's signal is aborted. By default it ignores requests for a reload. */
async function workWith(
  config: Config,
  stoppable: App,
  on: Database,
  { liveness = openLiveness(app.log, () => 0), onReload = () => {}, onReady = async () => {} }: WorkerOptions,
): Promise<void> {
  const receivers = { webhook: undefined, deadMan: undefined };
  const current = { config, receivers, access: undefined, superseded: new AbortController().signal };
  await runWorker(stoppable, on, {
    ...{ worker: await newWorker(), liveness, metrics: { attemptEnded() {} }, onReady },
    reloader: { current: () => current, refusal: () => undefined, request: onReload },
  });
}

test("a worker that reads a changed list of projects asks for a reload before it plans", async () => {
  const stop = new AbortController();
  const env = { OTHER_KEY: KEY, DATABASE_URL: "postgres://127.0.0.1/usage" };
  await using emulator = await startEmulator({
    consoleKeys: [{ secret: KEY, projectId: "b", scopes: ["member"], isAccountKey: true }],
  });
  let [changes, ticksSinceAnswer] = [0, 0];
  const countTick = (line: string) => {
    if (line.includes("tick finished") && emulator.requests[0]?.status !== undefined) ticksSinceAnswer++;
  };
  const log = pino({ level: "debug" }, { write: countTick });
  const stoppable = { ...silentApp({ env }), log, signal: stop.signal };
  const projects = [{ discover: true, key: { env: "OTHER_KEY" } }];
  const written = smallConfig(emulator.url, { projects, exports: [{ name: "of the list", projects: ["*"] }] });
  const config = await withKnownProjects(parse(written), db);
  // A queue job of a project that the worker does not know would also make it read the configuration.
  await sql`delete from usage_export_queue.job`.execute(db);
  const working = workWith(config, stoppable, db, { onReload: () => changes++ });
  // The first tick after the answer may have begun before it, and the next before the list was stored, but not the third.
  await expect.poll(() => changes > 0 || ticksSinceAnswer > 2).toBe(true);
  stop.abort();
  await working;
  expect(changes).toBeGreaterThan(0);
  expect(await projectsOfRuns("of the list")).toEqual([]);
});

const databaseError = (code: string, message: string) => Object.assign(new Error(message), { code });

test.each([
  ["a deadlock", databaseError("40P01", "deadlock detected")],
  ["a lock that was waited for too long", databaseError("55P03", "canceling statement due to lock timeout")],
])("%s is not reported as an outage", (_name, error) => {
  const lines: string[] = [];
  const liveness = openLiveness(pino({}, { write: (line) => lines.push(line) }), () => 0);
  liveness.reportDatabase();
  liveness.reportDatabase(error);
  expect(liveness.reasons()).toEqual([]);
  expect(lines).toMatchObject([expect.stringContaining(`"reason":"${error.message}"`)]);
  expect(lines.join()).not.toContain("not reached");
});

test("an outage is logged once when it begins and once when it ends", () => {
  const lines: string[] = [];
  let seconds = 0;
  const liveness = openLiveness(pino({}, { write: (line) => lines.push(line) }), () => seconds * 1000);
  expect(liveness.reasons()).toEqual(["starting"]);
  // Without an error, it reports that the database has answered.
  liveness.reportDatabase();
  expect(liveness.reasons()).toEqual([]);
  seconds = 10;
  for (let i = 0; i < 3; i++) liveness.reportDatabase(databaseError("57P01", "terminating connection"));
  expect(liveness.reasons()).toEqual(["terminating connection"]);
  seconds = 40;
  liveness.reportDatabase(databaseError("ECONNREFUSED", "connect ECONNREFUSED"));
  expect(liveness.reasons()).toEqual(["connect ECONNREFUSED"]);
  seconds = 70;
  for (let i = 0; i < 3; i++) liveness.reportDatabase();
  seconds = 85;
  expect(liveness.reasons()).toEqual([]);
  // No statement has failed, but for more than 15 s none was answered.
  seconds = 86;
  expect(liveness.reasons()).toEqual(["the database has not answered for 16 s"]);
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ msg: "database not reached", reason: "terminating connection" }),
    expect.objectContaining({ msg: "database reached again", seconds: 60 }),
  ]);
});

test("a worker is neither live nor ready if no tick has ended for over 10 minutes", () => {
  let minutes = 0;
  const liveness = openLiveness(pino({}, { write: () => {} }), () => minutes * 60_000);
  const shown = () => {
    liveness.reportDatabase();
    return [liveness.isLive(), liveness.reasons()];
  };
  minutes = 10;
  expect(shown()).toEqual([true, []]);
  minutes = 11;
  expect(shown()).toEqual([false, ["no tick has ended for 11 minutes"]]);
  liveness.heartbeat();
  expect(shown()).toEqual([true, []]);
});

test("a tick that fails without an outage makes the worker unready until a tick succeeds", async () => {
  const lines: string[] = [];
  const [logged, stop] = [pino({}, { write: (line) => lines.push(line) }), new AbortController()];
  const liveness = openLiveness(logged, () => 0);
  liveness.reportDatabase();
  const env = { USAGE_EXPORT_KEY: KEY, DATABASE_URL: "postgres://127.0.0.1/usage" };
  const config = parse(smallConfig("https://api.example.com", { exports: [{ schedule: farSchedule() }] }));
  const onReady = () => sql`alter table usage_export.worker rename to lost_worker`.execute(dbToDamage).then(() => {});
  const stoppable = { ...silentApp({ env }), log: logged, signal: stop.signal };
  const working = workWith(config, stoppable, dbToDamage, { liveness, onReady });
  const error = 'relation "usage_export.worker" does not exist';
  await expect.poll(liveness.reasons).toEqual([`the newest tick failed: ${error}`]);
  stop.abort();
  await working;
  const messages = lines.map((line) => JSON.parse(line).msg);
  expect(messages).toContain("tick failed");
  expect(messages).not.toContain("database not reached");
  liveness.heartbeat();
  expect(liveness.reasons()).toEqual([]);
});

const rotationCase = await rotationTest();

test("a queue job of a rotation that the worker's configuration lacks fails only at its last try", async () => {
  const [runId, projectId] = [randomUUID(), "p"];
  const planned = { runId, kind: "rotation", job: "exporter", trigger: "schedule" } as const;
  await inTransaction(db, (tx) => insertRun(tx, planned, [{ projectId, planned: 0 }]));
  const config = { exports: [], rotations: [] };
  const service = { forgetRefusals() {} };
  const [reader, writer] = [openReader(db), openWriter(db)];
  const lines: string[] = [];
  const logged = { ...app, log: pino({}, { write: (line) => lines.push(line) }) };
  const context = { app: logged, db, config, service, reader, writer } as unknown as WorkerContext;
  const { signal } = new AbortController();
  let unknownProjects = 0;
  const deps = { stopping: signal, onUnknownProject: () => unknownProjects++, begunRuns: new Set<string>() };
  const handle = (retryCount: number, id = runId) =>
    handleProject(context, deps, { data: { runId: id, projectId }, retryCount, retryLimit: 7, signal });
  const run = async (id = runId) =>
    (await sql<object>`select status, error from bi.runs where run_id = ${id}`.execute(db)).rows[0];
  const error = "project p of rotation exporter is not in the configuration of the worker that claimed it";

  await expect(handle(6)).rejects.toThrow(error);
  expect([unknownProjects, await run()]).toEqual([1, { status: "running", error: null }]);
  await handle(7);
  expect(await run()).toEqual({ status: "failed", error });
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ msg: "run finished", status: "failed", error }]);

  // A run has nothing to do for a project that the service no longer lists.
  const later = { ...planned, runId: randomUUID() };
  await inTransaction(db, (tx) => insertRun(tx, later, [{ projectId, planned: 0 }]));
  for (const [i, listed] of [[{ id: projectId, name: "p" }], []].entries())
    await storeReading(db, { keyName: "env KEY", listed, readAt: new Date(i), isConfirmed: true });
  await handle(0, later.runId);
  expect(await run(later.runId)).toEqual({ status: "ok", error: null });
});

rotationCase("two deliveries of a queue job send one create, even if it fails", async ({ context: setup }) => {
  setup.emulator.fault = ({ method }) => (method === "POST" ? { kind: "answer", status: 400, body: "{}" } : undefined);
  const config = await loadConfig(path.join(setup.folder, "jobs.config.json"));
  const lines: string[] = [];
  const env = { USAGE_EXPORT_KEY: setup.key, USAGE_EXPORT_MASTER_KEY: setup.masterKey };
  const app = { ...silentApp({ env }), log: pino({}, { write: (line) => lines.push(line) }) };
  await using opened = await openExportContext(app, config, setup.db);
  const context = opened as unknown as WorkerContext;
  const [runId, projectId] = [randomUUID(), PROJECT_ID];
  const planned = { runId, kind: "rotation", job: "exporter", trigger: "schedule" } as const;
  await inTransaction(setup.db, (tx) => insertRun(tx, planned, [{ projectId, planned: 0 }]));
  const { signal } = app;
  const deps = { stopping: signal, onUnknownProject: () => {}, begunRuns: new Set<string>() };
  const claimed = { data: { runId, projectId }, retryCount: 0, retryLimit: 7, signal };
  await Promise.all([handleProject(context, deps, claimed), handleProject(context, deps, claimed)]);
  expect(setup.emulator.requests.filter(({ method }) => method === "POST")).toHaveLength(1);
  const ended = lines.map((line) => JSON.parse(line)).filter(({ msg }) => msg === "run finished");
  expect(ended).toMatchObject([{ status: "failed", error: expect.stringContaining("answered 400") }]);

  // A rotation that fails before its first step is not repeated either.
  const next = { ...planned, runId: randomUUID() };
  await inTransaction(setup.db, (tx) => insertRun(tx, next, [{ projectId, planned: 0 }]));
  const withoutMasterKey = { ...context, app: { ...app, env: {} } };
  await handleProject(withoutMasterKey, deps, { ...claimed, data: { runId: next.runId, projectId } });
  expect(lines.at(-1)).toMatch(/"error":".*USAGE_EXPORT_MASTER_KEY is not set/);
});

test("a rotation of discovered projects needs a master key even before there are any", async () => {
  const projects = [{ discover: true, key: { env: "ACCOUNT_KEY" } }];
  const common = { schedule: farSchedule(), projects: ["*"] };
  const written = smallConfig("https://api.example.com", { projects, exports: [common] });
  const rotations = [{ ...common, name: "keys", comment: "c", scopes: ["keys:write"] }];
  const startable = requireStartable(app, parse({ ...written, rotations }), db);
  await expect(startable).rejects.toThrow("USAGE_EXPORT_MASTER_KEY is not set");
});

/** Returns after how many attempts opening succeeded, if the database answers the first one with this error code. */
async function attemptsAfter(code: string): Promise<number> {
  let attempts = 0;
  const liveness = openLiveness(app.log, () => 0);
  return retryUntilReached(app, liveness, async () => {
    attempts++;
    if (attempts === 1) throw Object.assign(new Error("a fault of the test"), { code });
    return attempts;
  });
}

test("a starting worker tries again only if the database can't be reached", async () => {
  expect(await attemptsAfter("ECONNREFUSED")).toBe(2);
  await expect(attemptsAfter("28P01")).rejects.toThrow("a fault of the test");
});
