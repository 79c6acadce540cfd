// A worker takes up a changed configuration while it works: no request is made twice or lost, and a mistake is shown everywhere.

import { spawnSync } from "node:child_process";
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { breakdowns, coverage, holdAnswersFrom, waitForRuns } from "../evidence.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";
import { farSchedule, manyFilters, PRODUCTION, PROJECT_ID, workerConfig } from "../small-config.ts";

const { test, db } = await databaseTest();

const RELOADS = 20;
/** Each filter has two series, and each series two days. */
const FILTER_COUNT = 120;

/** Renames a new file into place, as editors and most tools do. */
async function replaceConfig({ folder }: ProgramContext, config: object): Promise<void> {
  await writeFile(path.join(folder, "new"), JSON.stringify(config));
  await rename(path.join(folder, "new"), path.join(folder, "jobs.config.json"));
}

test(`over ${RELOADS} reloads under load no request is lost or made twice`, async ({ context }) => {
  const exports = [{ groupings: ["none", "endpoint"], checkFeatures: "off", filters: manyFilters(FILTER_COUNT) }];
  const emulator = await context.setUp({ service: { requestsPerSecond: 30 }, exports });
  const worker = context.start(["start"]);
  await expect.poll(() => breakdowns(emulator).length).toBeGreaterThan(0);
  for (let reload = 1; reload <= RELOADS; reload++) {
    const service = { requestsPerSecond: 30 + reload / 1000 };
    await replaceConfig(context, workerConfig(emulator.url, { service, exports }));
    worker.kill("SIGHUP");
    await expect.poll(() => worker.count("worker started"), { interval: 10 }).toBe(reload + 1);
  }
  const run = { status: "ok", requests: 2 * FILTER_COUNT, complete: 4 * FILTER_COUNT, failed: 0 };
  expect(await waitForRuns(db, 1)).toEqual([expect.objectContaining(run)]);
  expect(breakdowns(emulator)).toHaveLength(2 * FILTER_COUNT);
  expect(new Set(breakdowns(emulator)).size).toBe(2 * FILTER_COUNT);
  expect(await coverage(db)).toEqual({ complete: 4 * FILTER_COUNT });
});

test("requests in flight end under the configuration that they began with", async ({ context }) => {
  const job = { groupings: ["none", "endpoint", "method"] };
  const worker = { drainSeconds: 60 };
  const emulator = await context.setUp({ service: { maxConcurrent: 1 }, exports: [job], worker });
  const program = context.work();
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  const exports = [job, { name: "added", groupings: ["model"] }];
  await replaceConfig(context, workerConfig(emulator.url, { service: { maxConcurrent: 4 }, exports }));
  // The worker gets no signal: it watches the file.
  await program.waitFor("takes up the changed configuration when its requests in flight are finished");
  emulator.fault = undefined;
  releaseAnswers();
  expect(await waitForRuns(db, 2)).toMatchObject([
    { job: "nightly", status: "ok", requests: 3, complete: 6, failed: 0 },
    { job: "added", status: "ok", requests: 1, complete: 2 },
  ]);
  expect(new Set(breakdowns(emulator)).size).toBe(4);
  expect(breakdowns(emulator)).toHaveLength(4);
  expect(await coverage(db)).toEqual({ complete: 8 });
  // The same process goes on, and is one worker.
  const { stdout } = await context.run(["status", "--json"]);
  expect(JSON.parse(stdout).workers).toMatchObject([{ state: "live", pid: program.pid }]);
});

test("a worker that is starting goes on after SIGHUP", async ({ context }) => {
  await context.setUp();
  const worker = context.start(["start"]);
  // The first line of the log comes before the configuration is used.
  await worker.waitFor("database");
  const hangups = setInterval(() => worker.kill("SIGHUP"), 5);
  await worker.waitFor("worker started");
  clearInterval(hangups);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
});

test("a mistake in the changed configuration is shown everywhere until it is corrected", async ({ context }) => {
  const emulator = await context.setUp();
  const good = workerConfig(emulator.url);
  const worker = context.work();
  const { url } = JSON.parse(await worker.waitFor("monitor listens"));
  await waitForRuns(db, 1);
  await replaceConfig(context, workerConfig(emulator.url, { exports: [{ groupings: ["modle"] }] }));
  worker.kill("SIGHUP");
  expect(await worker.waitFor("the changed configuration is refused")).toContain("exports[0].groupings[0]");

  const page = async (name: string) => (await fetch(new URL(name, url))).text();
  await expect
    .poll(() => page("/metrics"))
    .toMatch(/^usage_export_condition\{name="config",subject="",severity="warning"\} 1$/m);
  await expect.poll(() => page("/")).toContain("Configuration refused since");
  // `status` itself needs a valid configuration.
  await writeFile(path.join(context.folder, "good.json"), JSON.stringify(good));
  expect(await context.run(["status", "--config", "good.json"])).toMatchObject({
    status: 1,
    stdout: expect.stringMatching(
      /configuration refused since .*: the worker .* keeps the previous one; .*exports\[0\]\.groupings\[0\].*did you mean "model"/,
    ),
  });

  await replaceConfig(context, good);
  worker.kill("SIGHUP");
  await worker.waitFor("the configuration is valid again");
  await expect.poll(() => page("/metrics")).not.toContain("usage_export_condition{");
  await expect.poll(async () => (await context.run(["status"])).stdout).toMatch(/^all is well/);
  expect(breakdowns(emulator)).toHaveLength(1);
});

test("a configuration that lacks a first key is taken up once the key is there", async ({ context }) => {
  const secret = context.newSecret({ allowedIn: "first.key" });
  const { url } = await context.setUp({}, { consoleKeys: [{ secret, projectId: PROJECT_ID, scopes: ["member"] }] });
  const worker = context.work({ USAGE_EXPORT_MASTER_KEY: Buffer.alloc(32, 7).toString("base64") });
  await waitForRuns(db, 1);

  const key = { rotation: "exporter", first: { file: "first.key" } };
  const common = { schedule: farSchedule(), project: "production", comment: "exporter", scopes: ["member"] };
  const rotations = [{ ...common, name: "exporter", deliver: [{ file: "sink" }] }];
  await replaceConfig(context, workerConfig(url, { projects: [{ ...PRODUCTION, key }], rotations }));
  const refused = await worker.waitFor("the changed configuration is refused");
  expect(refused).toMatch(/projects\[0\]\.key\.first: key file .*first\.key does not exist/);
  expect(worker.count("takes up the changed configuration")).toBe(0);

  await writeFile(path.join(context.folder, "first.key"), secret);
  worker.kill("SIGHUP");
  await expect.poll(() => worker.count("worker started")).toBe(2);
});

test("after a change of the configuration the key command is run again", async ({ context }) => {
  const [before, after] = [context.newSecret({ allowedIn: "vault" }), context.newSecret({ allowedIn: "vault" })];
  const consoleKeys = [before, after].map((secret) => ({ secret, projectId: PROJECT_ID, scopes: ["member"] }));
  const key = { command: ["sh", "-c", "echo run >> runs; cat vault"] };
  const part = { projects: [{ ...PRODUCTION, key }], exports: [{ schedule: "*/2 * * * * *" }] };
  const inFolder = (name: string) => path.join(context.folder, name);
  await writeFile(inFolder("vault"), before);
  const emulator = await context.setUp(part, { consoleKeys });
  const keysInUse = () => new Set(emulator.requests.slice(-2).map(({ keyId }) => keyId));
  const worker = context.work();
  await expect.poll(() => breakdowns(emulator).length).toBeGreaterThan(0);
  const keysBefore = keysInUse();

  await writeFile(inFolder("vault"), after);
  await replaceConfig(context, workerConfig(emulator.url, { ...part, service: { requestsPerSecond: 51 } }));
  await expect.poll(() => worker.count("worker started")).toBe(2);
  await expect.poll(() => keysInUse()).not.toEqual(keysBefore);
  expect(await readFile(inFolder("runs"), "utf8")).toBe("run\nrun\n");
});

test("a worker takes up a configuration after one that could not be read", async ({ context }) => {
  const { url } = await context.setUp();
  const worker = context.work();
  await waitForRuns(db, 1);
  const file = path.join(context.folder, "jobs.config.json");
  await rm(file);
  spawnSync("mkfifo", [file]);
  await worker.waitFor("jobs.config.json is not a regular file");
  await replaceConfig(context, workerConfig(url, { exports: [{ name: "changed" }] }));
  await worker.waitFor("the configuration has changed and is taken up");
});
