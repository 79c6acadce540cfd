// Programs share the service's caps, even if some hang, die or join later. Paused keys and hanging calls do not hold back other projects.

import { writeFile } from "node:fs/promises";
import type { ServerResponse } from "node:http";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { expect } from "vitest";
import { instantText } from "../../../src/show/format.ts";
import { answer, answerJson, scriptedServer } from "../../support/scripted-server.ts";
import { breakdowns, waitForRuns } from "../evidence.ts";
import { databaseTest } from "../program-context.ts";
import { manyFilters, workerConfig } from "../small-config.ts";

const { test, db, read } = await databaseTest();

const JOB = { window: { days: 1 }, checkFeatures: "off" };

/** A service that counts its calls. It answers a call when `decide` resolves. If that resolves to false, `decide` has answered the call itself. */
async function openCountingService(decide: (projectId: string, response: ServerResponse) => Promise<unknown>) {
  const startsMs: number[] = [];
  const counts = { inFlight: 0, inFlightMax: 0 };
  const server = await scriptedServer(({ target }, response) => {
    startsMs.push(performance.now());
    counts.inFlightMax = Math.max(counts.inFlightMax, ++counts.inFlight);
    response.once("close", () => counts.inFlight--);
    const url = new URL(target, "http://service");
    if (!url.pathname.endsWith("/usage/breakdown")) return answerJson(response, 404, {});
    const window = { start: url.searchParams.get("start"), end: url.searchParams.get("end") };
    const results = [{ requests: 5, grouping: { ...window, accessor: url.searchParams.get("accessor") } }];
    void decide(url.pathname.split("/")[3] ?? "", response).then((isLeftToAnswer) => {
      if (isLeftToAnswer !== false) answerJson(response, 200, { ...window, results });
    });
  });
  return Object.assign(counts, { startsMs, origin: server.origin, [Symbol.asyncDispose]: server[Symbol.asyncDispose] });
}

const CALLS_PER_SECOND = 20;
const SLOTS = 4;

/** The registered processes. Another process deletes those that are no longer live. */
async function processes(): Promise<readonly string[]> {
  const rows = await read(sql<{ id: string }>`select process_id::text as id from usage_export.calling_process`);
  return rows.map(({ id }) => id);
}

test("suspended, resumed, killed and added programs together keep to the caps", async ({ context }) => {
  await using server = await openCountingService(() => sleep(100));
  const { startsMs } = server;
  const service = { requestsPerSecond: CALLS_PER_SECOND, maxConcurrent: SLOTS };
  await context.configure(workerConfig(server.origin, { service, exports: [{ ...JOB, filters: manyFilters(80) }] }));
  const begun = (count: number) => expect.poll(() => startsMs.length, { interval: 20 }).toBeGreaterThanOrEqual(count);

  const suspended = context.start(["export"]);
  await begun(5);
  suspended.kill("SIGSTOP");
  const killed = context.start(["export"]);
  await begun(15);
  killed.kill("SIGKILL");
  const gone = await processes();
  const others = [context.start(["export"]), context.start(["export"])];
  await expect.poll(async () => (await processes()).filter((id) => gone.includes(id))).toEqual([]);
  suspended.kill("SIGCONT");

  for (const { ended } of [suspended, ...others]) expect(await ended).toMatchObject({ status: 0 });
  expect(server.inFlightMax).toBeLessThanOrEqual(SLOTS);
  // A process makes up for calls that started late: fewer than it has slots.
  const inASecond = startsMs.map((from) => startsMs.filter((ms) => ms >= from && ms < from + 1_000).length);
  expect(Math.max(...inASecond)).toBeLessThanOrEqual(CALLS_PER_SECOND + SLOTS);
  // A program that ends signs off, and a killed one is forgotten.
  expect(await processes()).toEqual([]);
});

const FILTER_COUNT = 30;
/** More keys than the four slots of the default `maxConcurrent`: if paused calls kept their slots, none would be left. */
const PAUSED = Array.from({ length: 9 }, (_, i) => `paused-${i}`);
const PROJECTS = [...PAUSED, "quick", "hanging", "swift"];

test("paused keys and hanging calls do not hold back other projects", async ({ context }) => {
  const hangsUntil = Promise.withResolvers<void>();
  const calls = new Map(PROJECTS.map((id) => [id, 0]));
  const total = (id: string) => calls.get(id) ?? 0;
  const hanging = new Set<ServerResponse>();
  let hangingMax = 0;
  await using server = await openCountingService(async (id, response) => {
    calls.set(id, total(id) + 1);
    if (id === "hanging" && total(id) > 1) {
      response.once("close", () => hanging.delete(response));
      hangingMax = Math.max(hangingMax, hanging.add(response).size);
      return hangsUntil.promise;
    }
    if (!PAUSED.includes(id) || total(id) > 1) return undefined;
    answer(response, 429, "", { "retry-after": "20" });
    return false;
  });
  const projects = PROJECTS.map((id) => ({ id, name: id, key: { file: `${id}.key` } }));
  for (const id of PROJECTS) {
    await writeFile(path.join(context.folder, `${id}.key`), context.newSecret({ allowedIn: `${id}.key` }));
  }
  const exports = [{ ...JOB, filters: manyFilters(FILTER_COUNT), projects: ["*"] }];
  await context.configure(workerConfig(server.origin, { projects, exports }));
  // The worker is ended before the service, which waits for open calls when it closes.
  await using _worker = context.work({ USAGE_EXPORT_KEY: undefined });

  const status = async () => (await context.run(["status"], { USAGE_EXPORT_KEY: undefined })).stdout;
  const paused = /calls with the key of file .*paused-0\.key are paused until .* UTC, as the service/;
  await expect.poll(status).toMatch(paused);
  await expect.poll(() => Math.min(total("quick"), total("swift"))).toBe(FILTER_COUNT);
  // The quick projects are done before a pause has ended.
  expect(Math.max(...PAUSED.map(total))).toBeLessThan(FILTER_COUNT);
  // One of the four slots is left to the others.
  expect(hangingMax).toBe(3);
  hangsUntil.resolve();
  expect(await waitForRuns(db, 1)).toMatchObject([{ status: "ok" }]);
  // Only the call that was answered with 429 is repeated.
  for (const id of PAUSED) expect(total(id)).toBe(FILTER_COUNT + 1);
});

test("status shows that a pause of hours is cut to an hour", async ({ context }) => {
  const emulator = await context.setUp({ worker: { drainSeconds: 1 } });
  emulator.fault = () =>
    breakdowns(emulator).length === 1
      ? { kind: "answer", status: 429, headers: { "retry-after": "10800" } }
      : undefined;
  await context.work().waitFor("the service asked for a pause: calls to it wait");

  const status = async (...options: readonly string[]) => (await context.run(["status", ...options])).stdout;
  // The line may be logged before the pause is stored.
  await expect.poll(() => status()).toMatch(/the key of env USAGE_EXPORT_KEY are paused until .* UTC, as the service/);
  const { callPauses } = JSON.parse(await status("--json"));
  expect(callPauses).toMatchObject([{ key: "env USAGE_EXPORT_KEY" }]);
  const until = new Date(callPauses[0].until);
  expect(await status()).toContain(`are paused until ${instantText(until)}`);
  const minutes = (until.getTime() - Date.now()) / 60_000;
  expect(minutes).toBeGreaterThan(55);
  expect(minutes).toBeLessThanOrEqual(60);
  expect(breakdowns(emulator)).toHaveLength(1);
});
