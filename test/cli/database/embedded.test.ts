// Without DATABASE_URL the program uses an embedded database in ./data, which only one process can use at a time.

import { existsSync } from "node:fs";
import { cp, rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, expect, onTestFinished } from "vitest";
import { openEmbedded } from "../../../src/db/connection/database.ts";
import type { Emulator } from "../../support/emulator.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { holdAnswersFrom } from "../evidence.ts";
import { lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { type ProgramContext, programTest } from "../program-context.ts";

const test = programTest();
/** For tests that take long: each start of the embedded database takes seconds. */
const testInCi = test.runIf(process.env.CI !== undefined);

const EMBEDDED = { DATABASE_URL: undefined };
const READING = { groupings: ["none", "endpoint", "tags", "model"], window: lastDays(2) };

const setUp = (context: ProgramContext) =>
  context.setUp({ service: { maxConcurrent: 1 }, exports: [{ groupings: READING.groupings, window: { days: 2 } }] });

const migratedCopy = path.join(temporaryFolder(afterAll), "data");

/** The first call runs `migrate`, which takes seconds. Later calls copy the database that it made. */
async function migrate(context: ProgramContext): Promise<void> {
  const data = path.join(context.folder, "data");
  if (existsSync(migratedCopy)) return cp(migratedCopy, data, { recursive: true });
  expect(await context.run(["migrate"], EMBEDDED)).toMatchObject({ status: 0 });
  await cp(data, migratedCopy, { recursive: true });
}

async function expectServed(context: ProgramContext, emulator: Emulator): Promise<void> {
  const db = await openEmbedded(path.join(context.folder, "data"));
  try {
    expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, context.key, READING));
  } finally {
    await db.destroy();
  }
}

test("commands and a worker log the folder of the embedded database that they use", async ({ context }) => {
  const emulator = await setUp(context);
  const run = async (command: string) => {
    const result = await context.run([command], EMBEDDED);
    const database = `"database":"embedded in ${path.join(context.folder, "data")}","by":"DATABASE_URL is not set"`;
    expect(result.stderr).toContain(database);
    return result;
  };
  const early = await run("export");
  expect(early).toMatchObject({ status: 1, stderr: expect.stringContaining("run: usage-export migrate") });
  await migrate(context);
  // The test of the package checks that the next export changes no row.
  expect(await run("export")).toMatchObject({ status: 0, stdout: expect.stringContaining("8 slices complete") });
  expect(await run("status")).toMatchObject({ status: 0, stdout: expect.stringContaining("slices: 8 complete") });

  const worker = context.start(["start", "--embedded"], { ...EMBEDDED, LOG_LEVEL: "debug" });
  await worker.waitFor("tick finished");
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
  await expectServed(context, emulator);
});

testInCi("a second process names the first one in its error without disturbing it", async ({ context }) => {
  const emulator = await setUp(context);
  await migrate(context);
  const first = context.start(["export"], EMBEDDED);
  const releaseAnswers = await holdAnswersFrom(emulator, 2); // the export waits for its second answer

  const second = await context.run(["export"], EMBEDDED);
  releaseAnswers();

  expect(second).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(new RegExp(`in use by process ${first.pid} \\(usage-export export\\).*DATABASE_URL`)),
  });
  expect(await first.ended).toMatchObject({ status: 0 });
  await expectServed(context, emulator);
});

testInCi("after a stopped and a killed export, the next export stores what is missing", async ({ context }) => {
  const emulator = await setUp(context);
  await migrate(context);
  for (const [signal, status] of [
    ["SIGTERM", 1],
    ["SIGKILL", null],
  ] as const) {
    const program = context.start(["export"], EMBEDDED);
    await holdAnswersFrom(emulator, emulator.requests.length + 3);
    program.kill(signal);
    expect(await program.ended).toMatchObject({ status });
  }
  // Ends what holdAnswersFrom began: that request and all later ones were held.
  emulator.fault = undefined;
  expect(await context.run(["export"], EMBEDDED)).toMatchObject({ status: 0 });
  await expectServed(context, emulator);
});

test("a command that can't create the folder of its database advises to set DATABASE_URL", async ({ context }) => {
  await setUp(context);
  await writeFile(path.join(context.folder, "data"), "");
  // The database is in the current folder, even if the configuration is somewhere else.
  const config = path.join(temporaryFolder(onTestFinished), "jobs.config.json");
  await rename(path.join(context.folder, "jobs.config.json"), config);
  expect(await context.run(["status", "--config", config], EMBEDDED)).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^usage-export: .* database can't be kept in \S*\/data: .*set DATABASE_URL .*\n$/m),
  });
});
