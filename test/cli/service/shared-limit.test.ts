// Several programs share the caps of the service: some are suspended, killed or join later. The test's service is the judge.

import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import type { Program } from "../../support/program.ts";
import { answerJson, type ScriptedServer, scriptedServer } from "../../support/scripted-server.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { manyFilters } from "../workers.ts";

const database = await testDatabase();
const test = programTest(database);

const RATE = 20;
const CAP = 4;
const LATENCY_MS = 100;
/** For which the others count a killed program as live, and until they notice. */
const LIVE_MS = 8_000 + 2_000;

type Judge = {
  readonly server: ScriptedServer;
  readonly startsMs: readonly number[];
  atOnceMax: number;
};

async function openJudge(): Promise<Judge & AsyncDisposable> {
  const startsMs: number[] = [];
  let atOnce = 0;
  const server = await scriptedServer(({ target }, response) => {
    startsMs.push(performance.now());
    judge.atOnceMax = Math.max(judge.atOnceMax, ++atOnce);
    response.once("close", () => atOnce--);
    const query = new URL(target, "http://service").searchParams;
    const window = { start: query.get("start"), end: query.get("end") };
    const results = [{ requests: 5, grouping: { ...window, accessor: query.get("accessor") } }];
    const status = target.includes("/usage/breakdown") ? 200 : 404;
    setTimeout(() => answerJson(response, status, status === 200 ? { ...window, results } : {}), LATENCY_MS);
  });
  const judge: Judge & AsyncDisposable = {
    server,
    startsMs,
    atOnceMax: 0,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
  return judge;
}

function countBetween({ startsMs }: Judge, fromMs: number, toMs: number): number {
  return startsMs.filter((ms) => ms >= fromMs && ms < toMs).length;
}

function mostInASecond(judge: Judge): number {
  return Math.max(...judge.startsMs.map((from) => countBetween(judge, from, from + 1_000)));
}

const seen = (judge: Judge, count: number) =>
  expect.poll(() => judge.startsMs.length, { interval: 20 }).toBeGreaterThanOrEqual(count);

function config(judge: Judge, filters: number) {
  const caps = { requestsPerSecond: RATE, maxConcurrent: CAP };
  const job = { window: { days: 1 }, checkFeatures: "off", filters: manyFilters(filters) };
  return smallConfig(judge.server.origin, { service: caps, exports: [job] });
}

async function expectOk(programs: readonly Program[]): Promise<void> {
  for (const program of programs) expect(await program.ended).toMatchObject({ status: 0 });
}

test("programs that are suspended, resumed, killed or join never exceed the caps at once, nor the rate by more than the cap", async ({
  context,
}) => {
  await using judge = await openJudge();
  await context.configure(config(judge, 80));

  const suspended = context.start(["export"]);
  await seen(judge, 5);
  suspended.kill("SIGSTOP");
  const suspendedMs = performance.now();
  const killed = context.start(["export"]);
  await seen(judge, 15);
  killed.kill("SIGKILL");
  const others = [context.start(["export"]), context.start(["export"])];
  await sleep(suspendedMs + LIVE_MS + 2_000 - performance.now());
  suspended.kill("SIGCONT");

  await expectOk([suspended, ...others]);
  expect(judge.atOnceMax).toBeLessThanOrEqual(CAP);
  expect(mostInASecond(judge)).toBeLessThanOrEqual(RATE + CAP);
  // A program that ends signs off, and a killed one is forgotten.
  expect((await sql`select from usage_export.calling_process`.execute(database.db)).rows).toHaveLength(0);
});
