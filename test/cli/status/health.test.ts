// The command `health`. It calls a monitor in this process, because the worker around the monitor does not matter here.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { type App, openApp } from "../../../src/app.ts";
import { runHealth } from "../../../src/cli/health.ts";
import { WAIT_MS_MAX } from "../../support/limits.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { openTestMonitor } from "../../web/test-monitor.ts";
import { smallConfig } from "../small-config.ts";

const folder = temporaryFolder(afterAll);

const STARTING = { readiness: () => ({ live: true, reasons: ["the database does not answer"] }) };

test.each<[string, Parameters<typeof openTestMonitor>[0], { live?: true }, number, string]>([
  ["exits with 0 if the worker is ready", {}, {}, 0, "ok\n"],
  ["exits with 1 and prints the reasons if the worker can't work", STARTING, {}, 1, "the database does not answer\n"],
  ["with the option live exits with 0 although the worker can't work", STARTING, { live: true }, 0, "ok\n"],
])("health %s", async (_, worker, options, status, output) => {
  await using monitor = await openTestMonitor(worker);
  expect(await ask(monitor.port, options)).toEqual({ status, output });
});

test("if no worker answers, the error names the URL that was called", async () => {
  const { port, ...monitor } = await openTestMonitor();
  await monitor[Symbol.asyncDispose]();
  await expect(ask(port)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining(`no worker answers at http://127.0.0.1:${port}/readyz`),
  });
});

test("health refuses port 0", async () => {
  await expect(ask(0)).rejects.toMatchObject({ code: "config", message: expect.stringContaining("monitor.port") });
});

async function ask(port: number, options: Parameters<typeof runHealth>[1] = {}) {
  const config = path.join(folder, `${port}.json`);
  await writeFile(config, JSON.stringify({ ...smallConfig("http://127.0.0.1:1"), monitor: { port } }));
  let output = "";
  const app: App = {
    ...(await openApp({ LOG_LEVEL: "silent" }, config, AbortSignal.timeout(WAIT_MS_MAX))),
    write(text) {
      output += text;
    },
  };
  const status = await runHealth(app, options);
  return { status, output };
}
