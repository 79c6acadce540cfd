// The list of projects fails, hangs or is old while projects appear, vanish and are renamed. The projects that are known are read all the
// same, no number is lost, and after an ordinary run every project that is there is complete and none that is gone is due.

import { sql } from "kysely";
import { expect } from "vitest";
import { completeDays, dueProjects, FIVE_REQUESTS, listedIn, makeListOld } from "../cli/account.ts";
import { type ProgramContext, programTest } from "../cli/program-context.ts";
import { smallConfig } from "../cli/small-config.ts";
import { farSchedule } from "../cli/workers.ts";
import { testDatabase } from "../support/database.ts";
import type { Fault, SeenRequest } from "../support/emulator.ts";
import type { Program } from "../support/program.ts";
import { TAKES_ALL } from "./scope.ts";
import { every } from "./sweep.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

/** Longer than nothing is planned because of a list. */
const PATIENCE = { timeout: 100_000 };
const LIMIT = { timeout: 180_000 };

const isList = (path: string) => path === "/v1/projects";
const NEVER = new Promise<never>(() => {});

/** How the list is answered. */
const FAULTS: Readonly<Record<string, Fault>> = {
  "is cut in its middle": { kind: "cut" },
  "is refused with 403": { kind: "answer", status: 403, body: "{}" },
  "ends with an error 500": { kind: "answer", status: 500, body: "{}" },
  "has no projects": { kind: "body", change: () => ({ projects: null }) },
  "is not answered": { kind: "hold", until: NEVER },
  "stops after its headers": { kind: "stall" },
  "comes a byte a second": { kind: "trickle", everyMs: 1_000 },
};

/** Four projects that were read. `change` has one of them appear, one vanish and one renamed. */
async function openAccount(context: ProgramContext, timeoutSeconds: number) {
  const names = new Map([..."abcd"].map((id) => [id, `name of ${id}`]));
  const keys = [context.newSecret(), context.newSecret()];
  const emulator = await context.serve({
    usage: () => FIVE_REQUESTS,
    projects: () => listedIn(names),
    consoleKeys: keys.map((secret) => ({ secret, projectId: "a", scopes: ["member"], isAccountKey: true })),
  });
  const config = smallConfig(emulator.url, {
    service: { timeoutSeconds },
    projects: [{ discover: true, key: { env: "ACCOUNT_KEY" } }],
    exports: [{ projects: ["*"], schedule: farSchedule() }],
  });
  await context.configure({ ...config, monitor: { port: 0 } });
  const envs = keys.map((key) => ({ ACCOUNT_KEY: key, USAGE_EXPORT_KEY: undefined, LOG_LEVEL: "debug" }));
  const run = (...args: readonly string[]) => context.run(args, envs[0]);
  expect(await run("export")).toMatchObject({ status: 0 });
  await makeListOld(db);
  const [, second] = emulator.keys().slice(-2);
  return {
    emulator,
    run,
    /** Starts the first or the second worker: they have different keys for the same list. */
    start: (number: 0 | 1) => context.start(["start"], envs[number], { timeoutMs: LIMIT.timeout }),
    isListOfSecond: ({ path, keyId }: SeenRequest) => isList(path) && keyId === second?.apiKeyId,
    change() {
      names.delete("d");
      names.set("e", "name of e").set("a", "another name");
    },
  };
}

/** What must be the case in the end, whatever the list was before. */
async function expectAllWell(run: (...args: readonly string[]) => ReturnType<ProgramContext["run"]>): Promise<void> {
  expect(await run("export")).toMatchObject({ status: 0 });
  const listed = ["another name", "name of b", "name of c", "name of e"];
  expect(await completeDays(db)).toMatchObject(Object.fromEntries(listed.map((name) => [name, 2])));
  expect(await dueProjects(db)).toEqual(listed);
  // Also those of the project that is gone.
  const { rows } = await sql`
    select distinct requests::integer as requests, count(*) over ()::integer as days from bi.usage_total
  `.execute(db);
  expect(rows).toEqual([{ requests: 5, days: 10 }]);
  const status = await run("status");
  expect(status.stdout).not.toMatch(/missing from the list|can't be listed|slices? (missing|failed)/);
}

for (const [what, fault] of every(4, Object.entries(FAULTS))) {
  test(`while the list of projects ${what}, those that are known are read`, LIMIT, async ({ context }) => {
    const { emulator, run, start, change } = await openAccount(context, 2);
    change();
    emulator.fault = ({ path }) => (isList(path) ? fault : undefined);
    const readings = () =>
      emulator.requests.filter(({ path }) => /\/projects\/[abc]\/usage\/breakdown/.test(path)).length;
    const before = readings();
    const worker = start(0);

    await expect.poll(readings, PATIENCE).toBeGreaterThanOrEqual(before + 3);
    await stop(worker);
    // Nothing of a list that can't be read whole is believed.
    expect(Object.keys(await completeDays(db)).toSorted()).toEqual([..."abcd"].map((id) => `name of ${id}`));
    emulator.fault = undefined;
    await expectAllWell(run);
  });
}

test(
  "an old list that comes after a newer one was stored by another worker changes nothing",
  LIMIT,
  async ({ context }) => {
    const { emulator, run, start, change, isListOfSecond } = await openAccount(context, 60);
    const released = Promise.withResolvers<void>();
    emulator.fault = (request) => (isListOfSecond(request) ? { kind: "hold", until: released.promise } : undefined);
    const second = start(1);
    const asked = () => emulator.requests.find(isListOfSecond);
    await expect.poll(asked, PATIENCE).toBeDefined();
    change();
    const first = start(0);
    await expect.poll(async () => (await completeDays(db))["name of e"], PATIENCE).toBe(2);
    released.resolve();
    await expect.poll(() => asked()?.status, PATIENCE).toBe(200);

    await second.waitFor("the configuration has changed and is taken up");
    await Promise.all([first, second].map(stop));
    expect(await dueProjects(db)).toEqual(["another name", "name of b", "name of c", "name of e"]);
    await expectAllWell(run);
  },
);

if (TAKES_ALL) {
  test("a worker that is answered with an old list loses no number", LIMIT, async ({ context }) => {
    const { emulator, run, start, change, isListOfSecond } = await openAccount(context, 60);
    const old = [..."abcd"].map((id) => ({ project_id: id, name: `name of ${id}` }));
    change();
    const first = start(0);
    await expect.poll(async () => (await completeDays(db))["name of e"], PATIENCE).toBe(2);
    await makeListOld(db);
    emulator.fault = (request) =>
      isListOfSecond(request) ? { kind: "body", change: () => ({ projects: old }) } : undefined;
    const second = start(1);
    await second.waitFor("the list of projects has changed");
    await second.waitFor("the configuration has changed and is taken up");

    await Promise.all([first, second].map(stop));
    expect((await completeDays(db))["name of e"]).toBe(2);
    await expectAllWell(run);
  });
}

async function stop(worker: Program): Promise<void> {
  worker.kill("SIGTERM");
  expect((await worker.ended).status).toBe(0);
}
