// Several programs share a rate limit, one of them is suspended and one is killed. The test's service measures whether the limit holds.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { answerJson, type ScriptedServer, scriptedServer } from "../../support/scripted-server.ts";
import { programTest } from "../program-context.ts";
import { PRODUCTION, smallConfig } from "../small-config.ts";
import { manyFilters } from "../workers.ts";

const database = await testDatabase();
const test = programTest(database);

const RATE = 20;
const CAP = 4;
const KEY_RATE = 6;
const KEY_CAP = 2;
const LATENCY_MS = 100;
/** Longer than a lease lasts. */
const SUSPENDED_MS = 12_000;

type Seen = { readonly startsMs: number[]; atOnce: number; atOnceMax: number };

type Judge = {
  readonly server: ScriptedServer;
  readonly all: Readonly<Seen>;
  /** The calls of the project whose key has limits of its own. */
  readonly limited: Readonly<Seen>;
};

async function openJudge(): Promise<Judge> {
  const all: Seen = { startsMs: [], atOnce: 0, atOnceMax: 0 };
  const limited: Seen = { startsMs: [], atOnce: 0, atOnceMax: 0 };
  const server = await scriptedServer(({ target }, response) => {
    for (const seen of target.includes("/limited/") ? [all, limited] : [all]) {
      seen.startsMs.push(performance.now());
      seen.atOnceMax = Math.max(seen.atOnceMax, ++seen.atOnce);
      response.once("close", () => seen.atOnce--);
    }
    const query = new URL(target, "http://service").searchParams;
    const window = { start: query.get("start"), end: query.get("end") };
    const results = [{ requests: 5, grouping: { ...window, accessor: query.get("accessor") } }];
    const status = target.includes("/usage/breakdown") ? 200 : 404;
    setTimeout(() => answerJson(response, status, status === 200 ? { ...window, results } : {}), LATENCY_MS);
  });
  return { server, all, limited };
}

function mostInASecond({ startsMs }: Judge["all"]): number {
  return Math.max(...startsMs.map((from) => startsMs.filter((ms) => ms >= from && ms < from + 1_000).length));
}

test("programs that are suspended, resumed and killed never exceed the caps at once, nor the rates by more than the caps", {
  timeout: 120_000,
}, async ({ context }) => {
  const judge = await openJudge();
  await using server = judge.server;
  const seen = (count: number) =>
    expect.poll(() => judge.all.startsMs.length, { timeout: 60_000, interval: 20 }).toBeGreaterThanOrEqual(count);
  const key = { env: "USAGE_EXPORT_KEY", requestsPerSecond: KEY_RATE, maxConcurrent: KEY_CAP };
  const projects = [
    { ...PRODUCTION, key: { file: "key" } },
    { id: "limited", name: "limited", key },
  ];
  const job = { window: { days: 1 }, checkFeatures: "off" };
  const exports = [
    { ...job, name: "limited", projects: ["limited"], filters: manyFilters(15) },
    { ...job, filters: manyFilters(80) },
  ];
  const service = { requestsPerSecond: RATE, maxConcurrent: CAP };
  await context.configure(smallConfig(server.origin, { service, projects, exports }));
  await writeFile(path.join(context.folder, "key"), context.newSecret("key"));

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
  expect(judge.all.atOnceMax).toBeLessThanOrEqual(CAP);
  expect(mostInASecond(judge.all)).toBeLessThanOrEqual(RATE + CAP);
  expect(judge.limited.startsMs.length).toBeGreaterThan(3 * 15);
  expect(judge.limited.atOnceMax).toBeLessThanOrEqual(KEY_CAP);
  expect(mostInASecond(judge.limited)).toBeLessThanOrEqual(KEY_RATE + KEY_CAP);
  // A program that ends releases its leases. Those of the killed program have expired.
  const { rows } = await sql`select service, leases from usage_export.rate_limit order by service`.execute(database.db);
  const ofKey = `${server.origin} key default/env USAGE_EXPORT_KEY`;
  expect(rows).toEqual([server.origin, ofKey].map((service) => ({ service, leases: {} })));
});
