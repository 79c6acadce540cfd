// A worker reads projects with different keys. Many keys are paused by the service, one has a low rate, one with a cap answers slowly: none
// of them holds back the others. The test's service is the judge.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { expect } from "vitest";
import { addDays, dayOf } from "../../../src/usage/days.ts";
import { testDatabase } from "../../support/database.ts";
import type { Program } from "../../support/program.ts";
import { answer, answerJson, scriptedServer } from "../../support/scripted-server.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { coverage, farSchedule, manyFilters, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const test = programTest(database);

const FILTERS = 30;
const KEY_RATE = 8;
/** More than the eight requests that a worker with the default `maxConcurrent` has ready at once. */
const PAUSED = Array.from({ length: 9 }, (_, i) => `paused-${i}`);
const PROJECTS = ["limited", ...PAUSED, "quick", "slow", "swift"];
const LIMITS: Readonly<Record<string, object>> = {
  limited: { requestsPerSecond: KEY_RATE, maxConcurrent: 1 },
  slow: { maxConcurrent: 2 },
};

/** What the service has seen of each project. */
type Seen = { readonly startsMs: number[]; atOnce: number; atOnceMax: number };

async function openJudge() {
  const slow = Promise.withResolvers<void>();
  const seen = new Map(PROJECTS.map((id): [string, Seen] => [id, { startsMs: [], atOnce: 0, atOnceMax: 0 }]));
  const server = await scriptedServer(({ target }, response) => {
    const url = new URL(target, "http://service");
    const [, , , id = ""] = url.pathname.split("/");
    const one = seen.get(id);
    if (!one || !target.includes("/usage/breakdown")) return answerJson(response, 404, {});
    one.startsMs.push(performance.now());
    one.atOnceMax = Math.max(one.atOnceMax, ++one.atOnce);
    response.once("close", () => one.atOnce--);
    const isPaused = PAUSED.includes(id) && one.startsMs.length === 1;
    if (isPaused) return answer(response, 429, "", { "retry-after": "3000" });
    const window = { start: url.searchParams.get("start"), end: url.searchParams.get("end") };
    const results = [{ requests: 5, grouping: { ...window, accessor: url.searchParams.get("accessor") } }];
    const held = id === "slow" && one.startsMs.length > 1 ? slow.promise : undefined;
    void Promise.resolve(held).then(() => answerJson(response, 200, { ...window, results }));
  });
  return {
    server,
    answerSlow: slow.resolve,
    of: (id: string) => seen.get(id) ?? { startsMs: [], atOnce: 0, atOnceMax: 0 },
  };
}

test("paused keys, a limited key and a slow key with a cap leave the calls of other projects as they were", {
  timeout: 90_000,
}, async ({ context }) => {
  const judge = await openJudge();
  await using server = judge.server;
  const projects = PROJECTS.map((id) => ({ id, name: id, key: { file: `${id}.key`, ...LIMITS[id] } }));
  for (const id of PROJECTS) {
    await writeFile(path.join(context.folder, `${id}.key`), context.newSecret(`${id}.key`));
  }
  const job = { schedule: farSchedule(), window: { days: 1 }, checkFeatures: "off", filters: manyFilters(FILTERS) };
  const config = smallConfig(server.origin, { projects, exports: [{ ...job, projects: ["*"] }] });
  await context.configure({ ...config, monitor: { port: 0 } });
  const worker = context.start(["start"], { USAGE_EXPORT_KEY: undefined });
  // Before the server is closed, which waits for the worker's calls.
  await using _ended = { [Symbol.asyncDispose]: () => end(worker) };
  const total = (id: string) => judge.of(id).startsMs.length;

  await expect.poll(() => Math.min(total("quick"), total("swift")), { timeout: 20_000 }).toBe(FILTERS);
  // Only the first call of the slow project has been answered.
  expect(total("slow")).toBe(3);
  judge.answerSlow();
  await expect.poll(() => Math.min(total("slow"), total("limited")), { timeout: 30_000 }).toBe(FILTERS);
  const callsOfPaused = PAUSED.map(total);
  expect(Math.min(...callsOfPaused)).toBeGreaterThanOrEqual(1);
  // A second call may have been on its way when the first was answered with 429.
  expect(Math.max(...callsOfPaused)).toBeLessThanOrEqual(4);
  const { startsMs, atOnceMax } = judge.of("limited");
  expect(atOnceMax).toBe(1);
  const inSecond = startsMs.map((from) => startsMs.filter((ms) => ms >= from && ms < from + 1_000).length);
  expect(Math.max(...inSecond)).toBeLessThanOrEqual(KEY_RATE + 1);

  // Longer than the worker has its slots after its last call.
  await sleep(3_000);
  const status = await context.run(["status"], { USAGE_EXPORT_KEY: undefined });
  expect(status.stdout).toMatch(
    /calls with the key of file .*paused-0\.key are paused until \d{4}-.* UTC, as the service/,
  );
  expect((await context.run(["resume-calls"])).stdout).toContain("they were paused until");
  expect(await waitForRuns(database.db, 1)).toMatchObject([{ status: "ok" }]);
  // All that was answered with 429 is read, and nothing twice.
  for (const id of PAUSED) expect(total(id)).toBe(FILTERS + 1);
});

/** With 50 in a chunk more chunks than a worker keeps in memory while their requests can't be made. */
const BIG = { groupings: ["none", "accessor", "deployment", "endpoint", "model", "method", "tags"], filters: 260 };

test("a project with far more requests than may wait leaves room to the requests of another that come later", async ({
  context,
}) => {
  const asked = new Map([
    ["big", 0],
    ["small", 0],
  ]);
  const total = (id: string) => asked.get(id) ?? 0;
  await using server = await scriptedServer(({ target }, response) => {
    const url = new URL(target, "http://service");
    const [, , , id = ""] = url.pathname.split("/");
    if (!target.includes("/usage/breakdown")) return answerJson(response, 404, {});
    asked.set(id, total(id) + 1);
    // Those of the big project are never answered.
    if (id === "big") return;
    const window = { start: url.searchParams.get("start"), end: url.searchParams.get("end") };
    answerJson(response, 200, { ...window, results: [{ requests: 5, grouping: window }] });
  });
  const projects = [...asked.keys()].map((id) => ({ id, name: id, key: { file: `${id}.key`, maxConcurrent: 1 } }));
  for (const id of asked.keys())
    await writeFile(path.join(context.folder, `${id}.key`), context.newSecret(`${id}.key`));
  const job = { schedule: farSchedule(), window: { days: 1 }, checkFeatures: "off" };
  const exports = [
    { ...job, name: "big", projects: ["big"], groupings: BIG.groupings, filters: manyFilters(BIG.filters) },
    { ...job, name: "small", projects: ["small"], groupings: ["none"] },
  ];
  await context.configure({ ...smallConfig(server.origin, { projects, exports }), monitor: { port: 0 } });
  const worker = context.start(["start"], { USAGE_EXPORT_KEY: undefined });
  await using _ended = { [Symbol.asyncDispose]: () => end(worker, "SIGKILL") };
  const putOff = async () => {
    const { rows } = await sql<{ chunks: number }>`
      select count(*)::integer as chunks from usage_export_queue.job where start_after > now()
    `.execute(database.db);
    return rows[0]?.chunks ?? 0;
  };
  await expect.poll(putOff).toBeGreaterThan(0);

  const today = dayOf(new Date());
  const days = ["--from", addDays(today, -2), "--to", addDays(today, -2)];
  expect((await context.run(["backfill", "--project", "small", ...days, "--enqueue"])).status).toBe(0);

  await expect.poll(async () => (await coverage(database.db)).complete, { timeout: 40_000 }).toBe(2);
  // One is being made, and the next one is ready for its slot.
  expect(total("big")).toBeLessThanOrEqual(2);
});

async function end(worker: Program, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  worker.kill(signal);
  await worker.ended;
}
