// A pause that the service asks for with Retry-After: all processes wait, at most an hour, and status and dashboard show it.

import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { programTest } from "../program-context.ts";
import { breakdowns, serveAndConfigure } from "../workers.ts";

const database = await testDatabase();
const test = programTest(database);

const PAUSED =
  /calls with the key of env USAGE_EXPORT_KEY are paused until (\d{4}-\d\d-\d\d \d\d:\d\d) UTC, as the service asked/;

test("a pause of hours is cut to an hour, and status and dashboard show its end", async ({ context }) => {
  const emulator = await serveAndConfigure(context, { rest: { worker: { drainSeconds: 1 } } });
  emulator.fault = () =>
    breakdowns(emulator).length === 1
      ? { kind: "answer", status: 429, headers: { "retry-after": "10800" } }
      : undefined;
  const worker = context.start(["start"]);
  await worker.waitFor("calls to the service wait, as it asked for a pause");

  const until = PAUSED.exec((await context.run(["status"])).stdout)?.[1];
  const minutes = (Date.parse(`${until?.replace(" ", "T")}:00Z`) - Date.now()) / 60_000;
  expect(minutes).toBeGreaterThan(55);
  expect(minutes).toBeLessThanOrEqual(60);
  const { callPauses } = JSON.parse((await context.run(["status", "--json"])).stdout);
  expect(callPauses).toMatchObject([
    { key: "env USAGE_EXPORT_KEY", until: expect.stringContaining(until?.replace(" ", "T") ?? "") },
  ]);

  expect(breakdowns(emulator)).toHaveLength(1);
});
