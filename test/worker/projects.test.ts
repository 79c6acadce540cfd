import { pino } from "pino";
import { expect, test } from "vitest";
import { withKnownProjects } from "../../src/jobs/discovery.ts";
import { openLiveness } from "../../src/worker/liveness.ts";
import { ProjectWatch } from "../../src/worker/projects.ts";
import { smallConfig } from "../cli/small-config.ts";
import { parse } from "../config/sample-config.ts";
import { testDatabase } from "../support/database.ts";
import { startEmulator } from "../support/emulator.ts";
import { silentApp } from "../support/silent-app.ts";

const { db } = await testDatabase();

const KEY = "0123456789abcdef0123456789abcdef";
const app = silentApp({ env: { ACCOUNT_KEY: KEY } });

test("ticks wait a time for a list that hangs, plan with the projects that are known, and take the list up when it comes", async () => {
  const released = Promise.withResolvers<void>();
  await using emulator = await startEmulator({
    consoleKeys: [{ secret: KEY, projectId: "a", scopes: ["member"], isAccountKey: true }],
    fault: () => ({ kind: "hold", until: released.promise }),
  });
  const projects = [{ discover: true, key: { env: "ACCOUNT_KEY" } }];
  const written = smallConfig(emulator.url, { projects, exports: [{ projects: ["*"] }] });
  const config = await withKnownProjects(parse(written), db);
  const read = Promise.withResolvers<void>();
  const projectWatch = new ProjectWatch({ app, config, db, onRead: read.resolve }, 300);
  const watch = () => projectWatch.shouldPlan();

  expect(await watch()).toBe(false);
  await expect.poll(watch).toBe(true);
  await expect.poll(() => emulator.requests.length).toBe(1);
  released.resolve();
  await read.promise;

  expect(await watch()).toBe(false);
  // It could not be taken up.
  expect(await watch()).toBe(true);
});

const failed = (code: string, message: string) => Object.assign(new Error(message), { code });

test.each([
  ["a deadlock", failed("40P01", "deadlock detected")],
  ["a lock that was waited for too long", failed("55P03", "canceling statement due to lock timeout")],
])("after %s the worker stays ready, and no outage is logged", (_name, error) => {
  const lines: string[] = [];
  const liveness = openLiveness(pino({}, { write: (line) => lines.push(line) }), () => 0);
  liveness.reportDatabase();
  liveness.reportDatabase(error);
  expect(liveness.reasons()).toEqual([]);
  expect(lines).toMatchObject([expect.stringContaining(`"reason":"${error.message}"`)]);
  expect(lines.join()).not.toContain("not reached");
});

test("an outage is logged when it begins and when it is over, however many callers report it", () => {
  const lines: string[] = [];
  const liveness = openLiveness(pino({}, { write: (line) => lines.push(line) }), () => 0);
  expect(liveness.reasons()).toEqual(["starting"]);
  liveness.reportDatabase();
  expect(liveness.reasons()).toEqual([]);
  for (let i = 0; i < 3; i++) liveness.reportDatabase(failed("57P01", "terminating connection"));
  expect(liveness.reasons()).toEqual(["terminating connection"]);
  liveness.reportDatabase(failed("ECONNREFUSED", "connect ECONNREFUSED"));
  for (let i = 0; i < 3; i++) liveness.reportDatabase();
  expect(liveness.reasons()).toEqual([]);
  expect(lines.map((line) => JSON.parse(line).msg)).toEqual(["database not reached", "database reached again"]);
});

test("a worker is live for as long as a tick may take, and then neither live nor ready", () => {
  let minutes = 0;
  const liveness = openLiveness(pino({}, { write: () => {} }), () => minutes * 60_000);
  const shown = () => {
    liveness.reportDatabase();
    return [liveness.isLive(), liveness.reasons()];
  };
  minutes = 10;
  expect(shown()).toEqual([true, []]);
  minutes = 11;
  expect(shown()).toEqual([false, ["no tick has ended for 11 minutes"]]);
  liveness.heartbeat();
  expect(shown()).toEqual([true, []]);
});
