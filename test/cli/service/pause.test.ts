// A pause that the service asks for with Retry-After: all processes wait, at most an hour, and status and dashboard show it.

import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import type { Emulator } from "../../support/emulator.ts";
import type { Program } from "../../support/program.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { breakdowns, serveAndConfigure } from "../workers.ts";

const database = await testDatabase();
const test = programTest(database);

const PAUSED =
  /calls with the key of env USAGE_EXPORT_KEY are paused until (\d{4}-\d\d-\d\d \d\d:\d\d) UTC, as the service asked/;
const WAITING = "calls to the service wait, as it asked for a pause";

/** The emulator answers the first breakdown request with 429 and this Retry-After. */
function askForPause(emulator: Emulator, seconds: string): void {
  let asked = false;
  emulator.fault = ({ path }) => {
    if (asked || !path.includes("/usage/breakdown")) return undefined;
    asked = true;
    return { kind: "answer", status: 429, headers: { "retry-after": seconds } };
  };
}

async function pausedWorker(
  context: ProgramContext,
  seconds: string,
): Promise<{ worker: Program; emulator: Emulator }> {
  const emulator = await serveAndConfigure(context, { rest: { worker: { drainSeconds: 1 } } });
  askForPause(emulator, seconds);
  const worker = context.start(["start"]);
  await worker.waitFor(WAITING);
  return { worker, emulator };
}

for (const retryAfter of ["31536000", "999999999", "Thu, 01 Jan 2099 00:00:00 GMT"]) {
  test(`a Retry-After of ${retryAfter} is logged as a mistake, and ignored`, async ({ context }) => {
    const emulator = await context.serve();
    askForPause(emulator, retryAfter);
    await context.configure(smallConfig(emulator.url));
    const { status, stderr } = await context.run(["export"]);
    expect(stderr).toMatch(/it asks for a wait of \d+ s, which is ignored as a mistake/);
    expect(status).toBe(0);
    const { stdout } = await context.run(["status"]);
    expect(stdout).not.toMatch(PAUSED);
  });
}

test("a pause of hours is cut to an hour, and status and dashboard show its end", async ({ context }) => {
  const { worker, emulator } = await pausedWorker(context, "10800");
  const url = JSON.parse(await worker.waitFor("monitor listens")).url;
  expect(await worker.waitFor("trying again")).toContain("it asks for a wait of 10800 s; the wait is cut to 3600 s");

  const until = PAUSED.exec((await context.run(["status"])).stdout)?.[1];
  const minutes = (Date.parse(`${until?.replace(" ", "T")}:00Z`) - Date.now()) / 60_000;
  expect(minutes).toBeGreaterThan(55);
  expect(minutes).toBeLessThanOrEqual(60);
  const { callPauses } = JSON.parse((await context.run(["status", "--json"])).stdout);
  expect(callPauses).toMatchObject([
    { key: "env USAGE_EXPORT_KEY", until: expect.stringContaining(until?.replace(" ", "T") ?? "") },
  ]);
  expect(await (await fetch(`${url}/data-health`)).text()).toContain("env USAGE_EXPORT_KEY");

  expect(breakdowns(emulator)).toHaveLength(1);
});
