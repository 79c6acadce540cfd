// What a worker does if a run takes too long, the service is not available, or a key is due for rotation.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { holdAnswersFrom } from "../hold-answers.ts";
import { programTest } from "../program-context.ts";
import { breakdowns, coverage, farSchedule, runs, serveAndConfigure, waitForRuns, workOnce } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

test("a request that fails at every attempt is counted and shown as failed with its reason, and its slices are not retried for an hour", async ({
  context,
}) => {
  const emulator = await serveAndConfigure(context);
  emulator.fault = () => ({ kind: "answer", status: 503 });
  await sql`update usage_export_queue.queue set retry_limit = 0 where name = 'export'`.execute(db);
  try {
    context.start(["start"]);
    const [run] = await waitForRuns(db, 1);
    expect(run).toMatchObject({ status: "failed", requests: 1, complete: 0, failed: 2 });
    const { rows } = await sql`select status, error from usage_export.slice`.execute(db);
    const error = expect.stringContaining("503");
    expect(rows).toEqual([1, 2].map(() => ({ status: "failed", error })));
    expect(await context.run(["status"])).toMatchObject({ status: 1 });

    // A new worker does not retry the failed slices for an hour.
    const asked = breakdowns(emulator).length;
    emulator.fault = undefined;
    const other = context.start(["start"], { LOG_LEVEL: "debug" });
    await other.waitFor("tick finished");
    expect(breakdowns(emulator)).toHaveLength(asked);
    await sql`update usage_export.slice set attempted_at = attempted_at - interval '1 hour'`.execute(db);
    context.start(["start"]);
    expect(await waitForRuns(db, 2)).toMatchObject([{ status: "failed" }, { trigger: "catchup", status: "ok" }]);
    expect(await coverage(db)).toEqual({ complete: 2 });
  } finally {
    await sql`update usage_export_queue.queue set retry_limit = 7 where name = 'export'`.execute(db);
  }
});

test("a request that the service refuses permanently fails its slices at once, and the other requests are made", async ({
  context,
}) => {
  const emulator = await serveAndConfigure(context, { exports: [{ groupings: ["none", "endpoint"] }] });
  emulator.fault = ({ path }) => (path.includes("endpoint") ? { kind: "answer", status: 400, body: "no" } : undefined);
  context.start(["start"]);
  const [run] = await waitForRuns(db, 1);
  expect(run).toMatchObject({ status: "failed", requests: 2, complete: 2, failed: 2 });
  expect(await coverage(db)).toEqual({ complete: 2, failed: 2 });
  expect(breakdowns(emulator).filter((path) => path.includes("endpoint"))).toHaveLength(1);
});

test("a run whose queue jobs were deleted is ended, and another run reads its days", async ({ context }) => {
  const emulator = await serveAndConfigure(context);
  const worker = context.start(["start"]);
  await holdAnswersFrom(emulator, 1);
  worker.kill("SIGKILL");
  await worker.ended;
  await sql`delete from usage_export_queue.job`.execute(db);
  emulator.fault = undefined;
  await workOnce(context, db);
  expect(await runs(db)).toMatchObject([
    { trigger: "catchup", status: "failed" },
    { trigger: "catchup", status: "ok", complete: 2 },
  ]);
  expect(await coverage(db)).toEqual({ complete: 2 });
});

test("a worker rotates a key that is due, creating one key, and its export succeeds", async ({ context }) => {
  const rotation = {
    name: "exporter",
    schedule: farSchedule(),
    project: "production",
    comment: "usage exporter",
    scopes: ["member"],
  };
  const key = { rotation: "exporter", first: { env: "USAGE_EXPORT_KEY" } };
  const emulator = await serveAndConfigure(context, {
    rest: { rotations: [rotation], projects: [{ id: "project-1", name: "production", key }] },
  });
  const env = { USAGE_EXPORT_MASTER_KEY: Buffer.from(context.newSecret().slice(0, 32)).toString("base64") };
  const worker = context.start(["start"], env);
  expect(await waitForRuns(db, 2)).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ kind: "rotation", job: "exporter", trigger: "catchup", status: "ok" }),
      expect.objectContaining({ kind: "export", status: "ok" }),
    ]),
  );
  worker.kill("SIGTERM");
  await worker.ended;
  expect(emulator.requests.filter(({ method }) => method === "POST")).toHaveLength(1);
});
