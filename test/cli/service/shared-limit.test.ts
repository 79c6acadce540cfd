// Several programs share a rate limit, one of them is suspended and one is killed. The test's service measures whether the limit holds.

import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { answerJson, type ScriptedServer, scriptedServer } from "../../support/scripted-server.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { manyFilters } from "../workers.ts";

const database = await testDatabase();
const test = programTest(database);

const RATE = 20;
const CAP = 4;
const LATENCY_MS = 100;
/** Longer than a lease lasts. */
const SUSPENDED_MS = 12_000;

type Judge = {
  readonly server: ScriptedServer;
  readonly startsMs: readonly number[];
  readonly atOnceMax: () => number;
};

async function openJudge(): Promise<Judge> {
  const startsMs: number[] = [];
  let atOnce = 0;
  let atOnceMax = 0;
  const server = await scriptedServer(({ target }, response) => {
    startsMs.push(performance.now());
    atOnceMax = Math.max(atOnceMax, ++atOnce);
    response.once("close", () => atOnce--);
    const query = new URL(target, "http://service").searchParams;
    const window = { start: query.get("start"), end: query.get("end") };
    const results = [{ requests: 5, grouping: { ...window, accessor: query.get("accessor") } }];
    const status = target.includes("/usage/breakdown") ? 200 : 404;
    setTimeout(() => answerJson(response, status, status === 200 ? { ...window, results } : {}), LATENCY_MS);
  });
  return { server, startsMs, atOnceMax: () => atOnceMax };
}

test("programs that are suspended, resumed and killed never exceed the cap at once, nor the rate by more than the cap", {
  timeout: 120_000,
}, async ({ context }) => {
  const judge = await openJudge();
  await using server = judge.server;
  const seen = (count: number) =>
    expect.poll(() => judge.startsMs.length, { timeout: 60_000, interval: 20 }).toBeGreaterThanOrEqual(count);
  const exports = [{ window: { days: 1 }, checkFeatures: "off", filters: manyFilters(100) }];
  const service = { requestsPerSecond: RATE, maxConcurrent: CAP };
  await context.configure(smallConfig(server.origin, { service, exports }));

  const suspended = context.start(["export"], {}, { timeoutMs: 100_000 });
  await seen(5);
  suspended.kill("SIGSTOP");
  const suspendedMs = performance.now();
  const killed = context.start(["export"]);
  await seen(15);
  killed.kill("SIGKILL");
  const others = [context.start(["export"]), context.start(["export"])];
  await sleep(suspendedMs + SUSPENDED_MS - performance.now());
  suspended.kill("SIGCONT");

  for (const program of [suspended, ...others]) expect(await program.ended).toMatchObject({ status: 0 });
  expect(judge.atOnceMax()).toBeLessThanOrEqual(CAP);
  const inSecond = judge.startsMs.map((from) => judge.startsMs.filter((ms) => ms >= from && ms < from + 1_000).length);
  expect(Math.max(...inSecond)).toBeLessThanOrEqual(RATE + CAP);
  // A program that ends releases its lease. The lease of the killed program has expired.
  const { rows } = await sql`select leases from usage_export.rate_limit`.execute(database.db);
  expect(rows).toEqual([{ leases: {} }]);
});
