// A worker takes up a changed configuration while it works: nothing is asked twice, nothing is lost, and a mistake is shown everywhere.

import { readFile, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { holdAnswersFrom } from "../hold-answers.ts";
import { PROJECT_ID, type ProgramContext, programTest } from "../program-context.ts";
import { PRODUCTION, smallConfig } from "../small-config.ts";
import { breakdowns, coverage, farSchedule, manyFilters, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const RELOADS = 20;
const FILTERS = 120;

type Fields = Readonly<Record<string, unknown>>;

function configOf(baseUrl: string, service: Fields, jobs: readonly Fields[], rest: Fields = {}): Fields {
  const exports = jobs.map((job) => ({ schedule: farSchedule(), checkFeatures: "off", ...job }));
  return { ...smallConfig(baseUrl, { service, exports }), monitor: { port: 0 }, ...rest };
}

/** As an editor does it, and as most tools that write configurations do. */
async function replaceConfig({ folder }: ProgramContext, config: unknown): Promise<void> {
  const text = typeof config === "string" ? config : JSON.stringify(config);
  await writeFile(path.join(folder, "new"), text);
  await rename(path.join(folder, "new"), path.join(folder, "jobs.config.json"));
}

test(`over ${RELOADS} reloads under load no request is lost and none is made twice`, async ({ context }) => {
  const emulator = await context.serve();
  const config = (rate: number) =>
    configOf(emulator.url, { requestsPerSecond: rate }, [
      { groupings: ["none", "endpoint"], filters: manyFilters(FILTERS) },
    ]);
  await context.configure(config(30));
  const worker = context.start(["start"]);
  await expect.poll(() => breakdowns(emulator).length).toBeGreaterThan(0);
  for (let reload = 1; reload <= RELOADS; reload++) {
    await replaceConfig(context, config(30 + reload / 1000));
    worker.kill("SIGHUP");
    await expect.poll(() => worker.count("worker started"), { interval: 10 }).toBe(reload + 1);
  }
  const [run, ...others] = await waitForRuns(db, 1);
  expect(run).toMatchObject({ status: "ok", requests: 2 * FILTERS, complete: 4 * FILTERS, failed: 0 });
  expect(others).toEqual([]);
  expect(breakdowns(emulator)).toHaveLength(2 * FILTERS);
  expect(new Set(breakdowns(emulator)).size).toBe(2 * FILTERS);
  expect(await coverage(db)).toEqual({ complete: 4 * FILTERS });
});

test("requests in flight end under the configuration they began with, and the next ones follow the new one", async ({
  context,
}) => {
  const emulator = await context.serve();
  const job = { groupings: ["none", "endpoint", "method"] };
  await context.configure(configOf(emulator.url, { maxConcurrent: 1 }, [job], { worker: { drainSeconds: 60 } }));
  const worker = context.start(["start"]);
  const releaseAnswers = await holdAnswersFrom(emulator, 1);
  const added = { name: "added", groupings: ["model"] };
  await replaceConfig(context, configOf(emulator.url, { maxConcurrent: 4 }, [job, added]));
  // Without a signal: the file is watched.
  await worker.waitFor("takes up the changed configuration when its claimed jobs are finished");
  emulator.fault = undefined;
  releaseAnswers();
  const [first, second] = await waitForRuns(db, 2);
  expect(first).toMatchObject({ job: "nightly", status: "ok", requests: 3, complete: 6, failed: 0 });
  expect(second).toMatchObject({ job: "added", status: "ok", requests: 1, complete: 2 });
  expect(new Set(breakdowns(emulator)).size).toBe(4);
  expect(breakdowns(emulator)).toHaveLength(4);
  expect(await coverage(db)).toEqual({ complete: 8 });
  // It is the same worker, and the same address of the monitor.
  const { stdout } = await context.run(["status", "--json"]);
  expect(JSON.parse(stdout).workers).toMatchObject([{ state: "live", pid: worker.pid }]);
});

test("a worker that is starting goes on after SIGHUP", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(configOf(emulator.url, {}, [{}]));
  const worker = context.start(["start"]);
  // The first line of the log comes before the configuration is used.
  await worker.waitFor("database");
  const hangups = setInterval(() => worker.kill("SIGHUP"), 5);
  await worker.waitFor("worker started");
  clearInterval(hangups);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
});

test("a mistake in the changed configuration is shown everywhere until it is corrected, and the worker works on", async ({
  context,
}) => {
  const emulator = await context.serve();
  const good = configOf(emulator.url, {}, [{}]);
  await context.configure(good);
  const worker = context.start(["start"]);
  const monitor = /http:[^"]*/.exec(await worker.waitFor("monitor listens"))?.[0] ?? "";
  await waitForRuns(db, 1);
  await replaceConfig(context, { ...good, exports: [{ ...(good.exports as Fields[])[0], groupings: ["modle"] }] });
  worker.kill("SIGHUP");
  const logged = await worker.waitFor("the changed configuration is refused");
  expect(logged).toContain("exports[0].groupings[0]");

  const page = async (name: string) => (await fetch(new URL(name, monitor))).text();
  await expect
    .poll(() => page("/metrics"))
    .toMatch(/^usage_export_condition\{name="config",subject="",severity="warning"\} 1$/m);
  await expect.poll(() => page("/")).toContain("Configuration refused since");
  // `status` needs a configuration of its own that is right.
  await writeFile(path.join(context.folder, "good.json"), JSON.stringify(good));
  const status = await context.run(["status", "--config", "good.json"]);
  expect(status).toMatchObject({ status: 1 });
  expect(status.stdout).toMatch(
    /configuration refused since .*: the worker .* goes on with the one before; .*exports\[0\]\.groupings\[0\].*did you mean "model"/,
  );

  await replaceConfig(context, good);
  worker.kill("SIGHUP");
  await worker.waitFor("the configuration is valid again");
  await expect.poll(() => page("/metrics")).not.toContain("usage_export_condition{");
  await expect.poll(async () => (await context.run(["status"])).stdout).toMatch(/^all is well/);
  expect(breakdowns(emulator)).toHaveLength(1);
});

test("a configuration that lacks a first key is refused before any work ends, and taken up once the key is there", async ({
  context,
}) => {
  const secret = context.newSecret("first.key");
  const emulator = await context.serve({ consoleKeys: [{ secret, projectId: PROJECT_ID, scopes: ["member"] }] });
  const config = configOf(emulator.url, {}, [{}]);
  await context.configure(config);
  const worker = context.start(["start"], { USAGE_EXPORT_MASTER_KEY: Buffer.alloc(32, 7).toString("base64") });
  await waitForRuns(db, 1);

  const key = { rotation: "exporter", first: { file: "first.key" } };
  const rotation = {
    name: "exporter",
    schedule: farSchedule(),
    project: "production",
    comment: "exporter",
    scopes: ["member"],
  };
  const rotated = { projects: [{ ...PRODUCTION, key }], rotations: [{ ...rotation, deliver: [{ file: "sink" }] }] };
  await replaceConfig(context, { ...config, ...rotated });
  const refused = await worker.waitFor("the changed configuration is refused");
  expect(refused).toMatch(/projects\[0\]\.key\.first: key file .*first\.key does not exist/);
  expect(worker.count("takes up the changed configuration")).toBe(0);

  await writeFile(path.join(context.folder, "first.key"), secret);
  worker.kill("SIGHUP");
  await expect.poll(() => worker.count("worker started")).toBe(2);
});

test("a changed configuration has the key printed again by its command", async ({ context }) => {
  const [before, after] = [context.newSecret("vault"), context.newSecret("vault")];
  const consoleKeys = [before, after].map((secret) => ({ secret, projectId: PROJECT_ID, scopes: ["member"] }));
  const emulator = await context.serve({ consoleKeys });
  const inFolder = (name: string) => path.join(context.folder, name);
  const key = { command: ["sh", "-c", "echo run >> runs; cat vault"] };
  const config = (requestsPerSecond: number) => ({
    ...smallConfig(emulator.url, {
      service: { requestsPerSecond },
      projects: [{ ...PRODUCTION, key }],
      exports: [{ schedule: "*/2 * * * * *" }],
    }),
    monitor: { port: 0 },
  });
  const commandRuns = async () => (await readFile(inFolder("runs"), "utf8")).trim().split("\n").length;
  const keysInUse = () => new Set(emulator.requests.slice(-2).map(({ keyId }) => keyId));
  await writeFile(inFolder("vault"), before);
  await context.configure(config(50));
  const worker = context.start(["start"]);
  await expect.poll(() => breakdowns(emulator).length).toBeGreaterThan(0);
  const inUse = keysInUse();

  await writeFile(inFolder("vault"), after);
  await replaceConfig(context, config(51));
  await expect.poll(() => worker.count("worker started")).toBe(2);
  await expect.poll(() => keysInUse()).not.toEqual(inUse);
  expect(await commandRuns()).toBe(2);
});
