// The command `demo`: the first thing a new user runs.

import { mkdir, readdir, readFile, realpath } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { programTest } from "./program-context.ts";
import { smallConfig } from "./small-config.ts";

/** In CI, because each runs the whole product. */
const test = programTest().runIf(process.env.CI !== undefined);

test("demo exports, never calls the configured service, and leaves only a report behind", async ({ context }) => {
  // A key, a service and a database are configured, so that the test would notice if the demo used them.
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));
  const temporary = path.join(context.folder, "tmp");
  await mkdir(temporary);

  const { status, stdout, stderr } = await context.run(["demo"], { TMPDIR: temporary, LOG_LEVEL: undefined });

  expect(stdout).toMatch(/the last 30 days: 1[67] calls, 480 slices complete, 0 failed, \d+ rows written/);
  expect(stdout).toMatch(/the export again, nothing has changed: .* 0 rows written/);
  expect(stdout).toMatch(/what it costs, by line item: \d+ calls, 60 slices complete, 0 failed/);
  expect(stdout).toMatch(/cost_total +\d{4}-\d\d-\d\d: \d+\.\d+ USD/);
  expect(stdout).toMatch(/coverage +540 of 540 slices complete, 0 gaps/);
  expect(stdout).toMatch(/restatements +[1-9]\d* numbers changed/);
  expect(stdout).toMatch(/reconciliation +0 days/);
  expect(stderr).toBe("");
  expect({ status, requests: emulator.requests }).toEqual({ status: 0, requests: [] });
  expect(await readdir(temporary)).toEqual([]);
  expect(await readdir(context.folder)).toEqual(["jobs.config.json", "tmp", "usage-report-demo.html"]);
  const report = await realpath(path.join(context.folder, "usage-report-demo.html"));
  expect(stdout).toContain(`\nreport: ${report}\n`);
  expect(stdout).toMatch(/\n {2}\S.* init --config my-jobs\.json\n$/);
  expect(await readFile(report, "utf8")).toMatch(/^<!doctype html>\n[\s\S]*<\/html>\n$/);
});

test("with --serve the dashboard is served until the demo is stopped", async ({ context }) => {
  const demo = context.start(["demo", "--serve"]);
  const [url = ""] = (await demo.waitFor("dashboard: ")).match(/http:\/\/127\.0\.0\.1:\d+\//) ?? [];
  const page = await fetch(url);
  expect([page.status, await page.text()]).toEqual([
    200,
    expect.stringContaining("<title>All is well: Overview, usage-export</title>"),
  ]);
  demo.kill("SIGINT");
  expect(await demo.ended).toMatchObject({ status: 0 });
  await expect(fetch(url)).rejects.toThrow("fetch failed");
});
