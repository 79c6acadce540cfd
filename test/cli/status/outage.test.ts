// `status` shows an outage once, by its cause, with its start, whether it is tried again and which numbers are shown meanwhile.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { runs, serveAndConfigure, waitForRuns, workOnce } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const GROUPINGS = ["none", "endpoint", "method", "model", "tags"];

async function retrying(): Promise<number> {
  const { rows } = await sql`select from usage_export_queue.job where state = 'retry'`.execute(db);
  return rows.length;
}

test("an unavailable service is shown once, beside the run that is retrying", async ({ context }) => {
  const emulator = await serveAndConfigure(context, { exports: [{ groupings: GROUPINGS }] });
  await workOnce(context, db);
  await ageStoredData(db, 1);
  emulator.fault = () => ({ kind: "answer", status: 503 });
  const worker = context.start(["start"]);
  const line = JSON.parse(await worker.waitFor("requests failed, to be tried again"));
  expect(line).toMatchObject({ level: 40, code: "unavailable", attempt: 1, attempts: 8 });
  await expect.poll(retrying).toBe(1);

  const { status, stdout } = await context.run(["status"]);
  const lines = stdout.match(/^ {2}the service fails \(503\) since .*$/gm);
  expect(lines).toEqual([
    expect.stringMatching(
      /since 20\S+ \d\d:\d\d UTC; 2 days of 1 project could not be read; the worker tries again; last good numbers shown, where there are some$/,
    ),
  ]);
  expect(stdout).toMatch(/^ {2}last run: running, .*, catchup$/m);
  expect(stdout.match(/the service answered 503/g)).toHaveLength(1);
  expect(status).toBe(1);

  const { url } = JSON.parse(await worker.waitFor("monitor listens"));
  const page = await (await fetch(url)).text();
  expect(page.match(/The service fails \(503\) since /g)).toHaveLength(1);
  emulator.fault = undefined;
  await waitForRuns(db, 2);
  expect(await runs(db)).toContainEqual(expect.objectContaining({ status: "ok", trigger: "catchup", planned: 10 }));
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
});

test("a service that refuses connections is shown as not reachable, and without a worker it is not said to be tried again", async ({
  context,
}) => {
  await context.configure(smallConfig("http://127.0.0.1:1", { exports: [{ groupings: GROUPINGS }] }));
  await context.run(["export"]);
  const { stdout } = await context.run(["status"]);
  expect(stdout).toMatch(
    /^ {2}the service is not reachable since .* UTC; 2 days of 1 project could not be read; no numbers for these days yet$/m,
  );
});
