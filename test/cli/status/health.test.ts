// Asks a monitor in this process: the worker around it does not matter here.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { type App, openApp } from "../../../src/app.ts";
import { runHealth } from "../../../src/cli/health.ts";
import { testMonitor } from "../../web/test-monitor.ts";
import { smallConfig } from "../small-config.ts";

const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-health-"));
afterAll(() => rm(folder, { recursive: true }));

const STARTING = { live: true, reasons: ["the database does not answer"] };

test("a worker that is well is 0", async () => {
  await using monitor = await testMonitor();
  expect(await ask(monitor.port)).toEqual({ status: 0, said: "ok\n" });
});

test("one that can't work is 1, with the reasons", async () => {
  await using monitor = await testMonitor({ readiness: () => STARTING });
  expect(await ask(monitor.port)).toEqual({ status: 1, said: "the database does not answer\n" });
});

test("asked only whether it lives, one that can't work is 0", async () => {
  await using monitor = await testMonitor({ readiness: () => STARTING });
  expect(await ask(monitor.port, { live: true })).toEqual({ status: 0, said: "ok\n" });
});

test("a monitor on every address is asked on this machine's own", async () => {
  await using monitor = await testMonitor();
  expect(await ask(monitor.port, {}, "0.0.0.0")).toMatchObject({ status: 0 });
});

test("where nobody answers, it says where it asked", async () => {
  const { port, ...monitor } = await testMonitor();
  await monitor[Symbol.asyncDispose]();
  await expect(ask(port)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining(`no worker answers at http://127.0.0.1:${port}/readyz`),
  });
});

test("a port that is any free one can't be asked at", async () => {
  await expect(ask(0)).rejects.toMatchObject({ code: "config", message: expect.stringContaining("monitor.port") });
});

async function ask(port: number, options: Parameters<typeof runHealth>[1] = {}, host = "127.0.0.1") {
  const config = path.join(folder, `${port}.json`);
  await writeFile(config, JSON.stringify({ ...smallConfig("http://127.0.0.1:1"), monitor: { host, port } }));
  let said = "";
  const app: App = {
    ...(await openApp({ LOG_LEVEL: "silent" }, config, AbortSignal.timeout(10_000))),
    write(text) {
      said += text;
    },
  };
  const status = await runHealth(app, options);
  return { status, said };
}
