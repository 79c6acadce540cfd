// A key that was refused once, and works since: what it failed to read is read again, and nobody is told any longer that it is refused.

import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { coverage, serveAndConfigure, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const REFUSED = /the service refuses the API key of production \(401\)/;

/** Two exports have read everything, and then a command in another shell had a wrong key. */
async function failAll(context: ProgramContext): Promise<void> {
  await serveAndConfigure(context, { exports: [{ name: "a" }, { name: "b", groupings: ["none", "model", "tags"] }] });
  expect((await context.run(["export"])).status).toBe(0);
  expect((await context.run(["export"], { USAGE_EXPORT_KEY: context.newSecret() })).status).toBe(1);
  expect(await coverage(db)).toEqual({ failed: 6 });
  const { stdout } = await context.run(["status"]);
  expect(stdout).toMatch(REFUSED);
  expect(stdout).toContain("usage-export export --project production reads them at once");
}

test("a success with the key of the project ends its refusal, and what is left is read at the next tick of a worker", async ({
  context,
}) => {
  await failAll(context);
  const wrong = { USAGE_EXPORT_KEY: context.newSecret() };
  expect((await context.run(["export", "--job", "a"], wrong)).status).toBe(1);
  expect((await context.run(["status"])).stdout).not.toContain("works since");

  expect((await context.run(["export", "--job", "a"])).status).toBe(0);
  expect(await coverage(db)).toEqual({ complete: 2, failed: 4 });
  const { stdout } = await context.run(["status"]);
  expect(stdout).not.toMatch(REFUSED);
  expect(stdout).toContain("the key was refused, and works since: the day is read again");
});

test("a worker that starts tries at once what a refused key could not read", async ({ context }) => {
  await failAll(context);
  context.start(["start"]);
  await expect.poll(() => coverage(db)).toEqual({ complete: 6 });
  expect((await context.run(["status"])).stdout).not.toMatch(REFUSED);
});

test("a worker sends a refused key once a run, however many projects have it", async ({ context }) => {
  const projects = Array.from({ length: 6 }, (_, i) => ({
    id: `p${i}`,
    name: `p${i}`,
    key: { env: "USAGE_EXPORT_KEY" },
  }));
  const names = projects.map(({ name }) => name);
  // Calls that are made at the same time do not know of each other's refusal.
  const service = { maxConcurrent: 1 };
  const emulator = await serveAndConfigure(context, { service, exports: [{ projects: names }], rest: { projects } });
  context.start(["start"], { USAGE_EXPORT_KEY: context.newSecret() });
  expect(await waitForRuns(db, 1)).toMatchObject([{ status: "failed", failed: 12 }]);
  expect(emulator.requests).toHaveLength(1);
});
