// Without DATABASE_URL the program keeps its own database under ./data, for one process at a time.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, vi } from "vitest";
import { openEmbedded } from "../../../src/db/connection/database.ts";
import type { Emulator } from "../../../src/emulator/server.ts";
import { lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { reached } from "../reached.ts";
import { smallConfig } from "../small-config.ts";
import { type World, worldTest } from "../world.ts";

const test = worldTest();

// Each start of the embedded database takes a second or two of work, and more beside other tests.
vi.setConfig({ testTimeout: 180_000 });

const EMBEDDED = { DATABASE_URL: undefined };
const READING = { groupings: ["none", "endpoint", "tags", "model"], window: lastDays(2) };

test("migrate, export, the same again, and status", async ({ world }) => {
  const emulator = await prepared(world);
  const run = (command: string) => world.run([command], EMBEDDED);

  expect(await run("export")).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("run: usage-export migrate"),
  });
  expect(await run("migrate")).toMatchObject({ status: 0 });
  expect(await run("export")).toMatchObject({ status: 0 });
  await expectServed(world, emulator);
  expect(await run("export")).toMatchObject({ status: 0, stdout: expect.stringContaining(" 0 rows changed") });
  expect(await run("status")).toMatchObject({ status: 0, stdout: expect.stringContaining("slices: 8 complete") });
  await expectServed(world, emulator);
});

test("a second process is told who has the database, and costs the first one nothing", async ({ world }) => {
  const emulator = await prepared(world);
  await world.run(["migrate"], EMBEDDED);
  const first = world.start(["export"], EMBEDDED);
  const goOn = await reached(emulator, 2);

  const second = await world.run(["export"], EMBEDDED);
  goOn();

  expect(second).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(new RegExp(`in use by process ${first.pid} \\(usage-export export\\).*DATABASE_URL`)),
  });
  expect(await first.ended).toMatchObject({ status: 0 });
  await expectServed(world, emulator);
});

test("however exports end in the middle, an ordinary one completes what is missing", async ({ world }) => {
  const emulator = await prepared(world);
  await world.run(["migrate"], EMBEDDED);
  for (const [signal, status] of [
    ["SIGTERM", 1],
    ["SIGKILL", null],
  ] as const) {
    const program = world.start(["export"], EMBEDDED);
    await reached(emulator, emulator.requests.length + 3);
    program.kill(signal);
    expect(await program.ended).toMatchObject({ status });
  }
  emulator.fault = undefined;

  expect(await world.run(["export"], EMBEDDED)).toMatchObject({ status: 0 });

  await expectServed(world, emulator);
});

test("where its folder can't be, a command says so and how to go on", async ({ world }) => {
  await prepared(world);
  await writeFile(path.join(world.folder, "data"), "");

  expect(await world.run(["status"], EMBEDDED)).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^usage-export: the embedded database can't be kept in .*; set DATABASE_URL .*\n$/m),
  });
});

async function prepared(world: World): Promise<Emulator> {
  const emulator = await world.serve();
  await world.configure(
    smallConfig(emulator.url, { service: { maxConcurrent: 1 }, exports: [{ groupings: READING.groupings }] }),
  );
  return emulator;
}

async function expectServed(world: World, emulator: Emulator): Promise<void> {
  const db = await openEmbedded(path.join(world.folder, "data"));
  try {
    expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, world.key, READING));
  } finally {
    await db.destroy();
  }
}
