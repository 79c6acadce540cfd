// What `start` writes to a terminal, and to a log.

import { expect } from "vitest";
import { runLine } from "../../../src/worker/runs.ts";
import { testDatabase } from "../../support/database.ts";
import { programTest } from "../program-context.ts";
import { serveAndConfigure, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

/** Makes the program treat its standard error as a terminal that is open. */
const FAKE = `import tty from "node:tty"; import { syncBuiltinESMExports } from "node:module";
  process.stderr.isTTY = true; tty.isatty = () => true; syncBuiltinESMExports();`;
const TERMINAL = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(FAKE)}` };

test("on a terminal start shows its address, the next run of each job, and a line for each run", async ({
  context,
}) => {
  const emulator = await serveAndConfigure(context, { exports: [{}, { name: "weekly" }] });
  await context.run(["jobs", "pause", "weekly", "--why", "moving house"]);
  emulator.fault = ({ path }) => (path.includes("breakdown") ? { kind: "body", change: () => ({}) } : undefined);
  const worker = context.start(["start"], TERMINAL);
  await waitForRuns(db, 1);
  await worker.waitFor("export nightly (catchup)");
  worker.kill("SIGTERM");
  const { stdout, stderr } = await worker.ended;
  expect(stdout.split("\n")).toEqual([
    expect.stringMatching(/^dashboard, health and metrics: http:\/\/127\.0\.0\.1:\d+\/$/),
    expect.stringMatching(/^export nightly \(30 \d+ \* \* \* UTC\): next run 2\d{3}-\d\d-\d\d \d\d:30 UTC$/),
    expect.stringMatching(/^export weekly \(.* UTC\): paused since .*: moving house$/),
    expect.stringContaining("Ctrl-C"),
    expect.stringMatching(
      /^2\S+ \S+ UTC export nightly \(catchup\) failed, 1 request, 0 of 2 slices complete, 0 rows changed, (?:under )?\d+ s: expected an array/,
    ),
    "",
  ]);
  expect(stderr).not.toContain("run finished");
});

test("without a terminal nothing is on standard output, and the log has a run's counts", async ({ context }) => {
  await serveAndConfigure(context);
  const worker = context.start(["start"]);
  const line = JSON.parse(await worker.waitFor("run finished"));
  expect(line).toMatchObject({
    ...{ level: 30, kind: "export", job: "nightly", trigger: "catchup", status: "ok", seconds: expect.any(Number) },
    ...{ requests: 1, planned: 2, complete: 2, suspect: 0, failed: 0, rowsChanged: 2 },
  });
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ stdout: "" });
});

test("a run with failures is a warning that names them", async ({ context }) => {
  const emulator = await serveAndConfigure(context, { exports: [{ groupings: ["none", "model"] }] });
  emulator.fault = ({ path }) => (path.includes("model") ? { kind: "body", change: () => ({}) } : undefined);
  const worker = context.start(["start"]);
  expect(JSON.parse(await worker.waitFor("run finished"))).toMatchObject({
    ...{ level: 40, status: "failed", planned: 4, complete: 2, failed: 2 },
    error: expect.stringContaining("expected an array"),
  });
});

test("the line of a rotation lists its actions", () => {
  const at = new Date("2026-03-17T04:00:02Z");
  const rotation = {
    kind: "rotation",
    job: "exporter",
    trigger: "schedule",
    status: "ok",
    did: ["created", "activated"],
  } as const;
  expect(runLine(rotation, at)).toBe("2026-03-17 04:00 UTC rotation exporter (schedule) ok, created, activated");
});
