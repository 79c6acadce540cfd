import { expect, test } from "vitest";
import { withKnownProjects } from "../../src/jobs/discovery.ts";
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
  let changes = 0;
  const projectWatch = new ProjectWatch({ app, config, db, onChange: () => changes++, onRead: read.resolve }, 300);
  const watch = () => projectWatch.shouldPlan();

  expect(await watch()).toBe(false);
  await expect.poll(watch).toBe(true);
  await expect.poll(() => emulator.requests.length).toBe(1);
  expect(changes).toBe(0);
  released.resolve();
  await read.promise;

  expect([await watch(), changes]).toEqual([false, 1]);
  // It could not be taken up.
  expect([await watch(), changes]).toEqual([true, 2]);
});
