// A worker with as many concurrent calls as in a large installation: its own statements never deadlock.

import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { expect } from "vitest";
import { PROJECT_ID, programTest } from "../cli/program-context.ts";
import { tcpProxy } from "../cli/tcp-proxy.ts";
import { coverage, farSchedule, manyFilters, waitForRuns } from "../cli/workers.ts";
import { testDatabase } from "../support/database.ts";
import { answerJson, scriptedServer } from "../support/scripted-server.ts";
import { TAKES_ALL } from "./scope.ts";

const GROUPINGS = ["none", "accessor", "deployment", "endpoint", "model", "method", "tags"];
const FILTERS = TAKES_ALL ? 300 : 150;
const MAX_CONCURRENT = 64;
/** Long enough that the run lasts for several heartbeats, with as many claimed jobs as possible. */
const LATENCY_MS = 50;
/** As of a database in another building: transactions hold their locks long enough to collide. */
const DATABASE_LATENCY_MS = 10;

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

test("no statement of a busy worker is ended by a deadlock", { timeout: 120_000 }, async ({ context }) => {
  await using server = await scriptedServer(({ target }, response) => {
    if (!target.includes("/usage/breakdown")) return answerJson(response, 404, {});
    const query = new URL(target, "http://service").searchParams;
    const [start, end] = [query.get("start"), query.get("end")];
    const grouping = query.get("grouping");
    const group = Object.fromEntries(GROUPINGS.map((name) => [name, name === grouping ? groupOf(name) : null]));
    const results = [{ requests: 5, grouping: { start, end, ...group } }];
    const body = { start, end, resolution: { units: "day", amount: 1 }, results };
    setTimeout(() => answerJson(response, 200, body), LATENCY_MS);
  });
  await context.configure({
    service: {
      baseUrl: server.origin,
      dialect: "interface",
      requestsPerSecond: 1000,
      maxConcurrent: MAX_CONCURRENT,
    },
    projects: [{ id: PROJECT_ID, name: "production", key: { env: "USAGE_EXPORT_KEY" } }],
    exports: [
      {
        name: "nightly",
        schedule: farSchedule(),
        projects: ["production"],
        window: { days: 1 },
        groupings: GROUPINGS,
        filters: manyFilters(FILTERS),
        checkFeatures: "off",
      },
    ],
    monitor: { port: 0 },
  });
  const before = await deadlocks();
  await using link = await tcpProxy(database.url, DATABASE_LATENCY_MS);
  const worker = context.start(["start"], { DATABASE_URL: link.url }, { timeoutMs: 110_000 });
  const requests = FILTERS * GROUPINGS.length;
  expect(await waitForRuns(db, 1)).toMatchObject([{ status: "ok", requests }]);
  worker.kill("SIGTERM");
  const { stderr } = await worker.ended;
  const found = (await deadlocks()) - before;
  expect(found).toBe(0);
  expect(stderr).not.toMatch(/deadlock|database not reached/);
  // No claim was lost: each request was sent once.
  expect(server.requests.filter(({ target }) => target.includes("/usage/breakdown"))).toHaveLength(requests);
  expect(await coverage(db)).toEqual({ complete: requests });
});

function groupOf(grouping: string): string | readonly string[] {
  return grouping === "tags" ? ["a"] : "a";
}

/** Waits first, because the server counts deadlocks a moment after they happened. */
async function deadlocks(): Promise<number> {
  await sleep(1_500);
  const { rows } = await sql<{ deadlocks: number }>`
    select deadlocks::integer from pg_stat_database where datname = current_database()
  `.execute(db);
  return rows[0]?.deadlocks ?? 0;
}
