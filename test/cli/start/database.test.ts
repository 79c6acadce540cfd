// A worker and its database: the worker waits for a database that can't be reached yet, refuses one with another schema, and loses only
// time if the database becomes unreachable during a run.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { holdAnswersFrom } from "../hold-answers.ts";
import { programTest } from "../program-context.ts";
import { tcpProxy } from "../tcp-proxy.ts";
import { coverage, runs, serveAndConfigure, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db, url } = database;
const test = programTest(database);

const GROUPINGS = ["none", "endpoint", "method", "model"];

test("a worker waits for a database that can't be reached, reports that, and works when it can", async ({
  context,
}) => {
  await serveAndConfigure(context);
  await using proxy = await tcpProxy(url);
  proxy.cut();
  const worker = context.start(["start"], { DATABASE_URL: proxy.url });
  expect(await worker.waitFor("database not reached")).toContain(new URL(proxy.url).host);
  const monitor = await monitorOf(worker);
  expect(await ask(`${monitor}/readyz`)).toEqual({ status: 503, body: expect.stringContaining("can't be used") });
  expect(await ask(`${monitor}/livez`)).toMatchObject({ status: 200 });
  proxy.restore();
  await waitForRuns(db, 1);
  expect(await ask(`${monitor}/readyz`)).toEqual({ status: 200, body: "ok\n" });
});

test("a worker that waits for its database stops on a signal", async ({ context }) => {
  await serveAndConfigure(context);
  const worker = context.start(["start"], { DATABASE_URL: "postgres://nobody@127.0.0.1:1/nothing" });
  await worker.waitFor("database not reached");
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
});

test("a worker refuses an old schema, and names the command that fixes it", async ({ context }) => {
  await serveAndConfigure(context);
  const addToHash = (text: string) =>
    sql`update usage_export.schema_version set views_hash = replace(views_hash, 'x', '') || ${text}`.execute(db);
  await addToHash("x");
  try {
    const { status, stderr } = await context.run(["start"]);
    expect(status).toBe(1);
    expect(stderr).toContain("the database is not up to date; run: usage-export migrate");
  } finally {
    await addToHash("");
  }
});

test("losing the database in the middle of a run costs time and nothing else", async ({ context }) => {
  const emulator = await serveAndConfigure(context, {
    service: { maxConcurrent: 2 },
    exports: [{ groupings: GROUPINGS }],
  });
  await using proxy = await tcpProxy(url);
  const worker = context.start(["start"], { DATABASE_URL: proxy.url });
  const releaseAnswers = await holdAnswersFrom(emulator, 2);
  proxy.cut();
  emulator.fault = undefined;
  releaseAnswers();
  await worker.waitFor("database not reached");
  proxy.restore();
  const [run] = await waitForRuns(db, 1);
  expect(run).toMatchObject({ status: "ok", requests: 4, planned: 8, complete: 8, failed: 0 });
  expect(await coverage(db)).toEqual({ complete: 8 });
  expect(await runs(db)).toHaveLength(1);
});

async function monitorOf(worker: { readonly waitFor: (text: string) => Promise<string> }): Promise<string> {
  return JSON.parse(await worker.waitFor("monitor listens")).url;
}

async function ask(address: string): Promise<{ readonly status: number; readonly body: string }> {
  const response = await fetch(address);
  return { status: response.status, body: await response.text() };
}
