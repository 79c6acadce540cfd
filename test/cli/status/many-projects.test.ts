// `status` of several projects: the worst are named first, and --project answers about those whose names fit.

import { expect } from "vitest";
import { parseConfig } from "../../../src/config/config.ts";
import { markDue, registerSeries, seriesIdOf } from "../../../src/db/usage/stored-series.ts";
import { addDays, dayOf } from "../../../src/emulator/days.ts";
import { configuredSeries } from "../../../src/usage/plan.ts";
import { testDatabase } from "../../support/database.ts";
import { programTest } from "../program-context.ts";
import { PRODUCTION, smallConfig } from "../small-config.ts";

const database = await testDatabase();
const test = programTest(database);

const NAMES = ["lab", "prod-eu", "prod-us"];
const CONFIG = smallConfig("http://127.0.0.1:1", {
  projects: NAMES.map((name) => ({ ...PRODUCTION, name, id: name })),
  exports: [{ projects: NAMES }],
});
const yesterday = addDays(dayOf(new Date()), -1);

test("the worst projects come first, and --project answers about those whose names fit", async ({ context }) => {
  await context.configure(CONFIG);
  const { exports } = parseConfig(JSON.stringify(CONFIG), { source: "jobs.config.json", baseDir: "/" });
  const series = configuredSeries(exports);
  const ids = await registerSeries(database.db, series);
  for (const [i, { series: one }] of series.entries()) {
    const due = { start: addDays(yesterday, -i), end: yesterday };
    if (i > 0)
      await markDue(database.db, [seriesIdOf(ids, one)], { first: due.start, oldest: due, through: yesterday });
  }

  const { stdout } = await context.run(["status"]);
  expect(stdout).toMatch(
    /\nprojects: 2 of 3 have days that are not complete\n {2}prod-us: 1 series, 0 complete, 3 missing; .*\n {2}prod-eu: 1 series, 0 complete, 2 missing;/,
  );

  const eu = await context.run(["status", "--project", "prod-e*"]);
  expect(eu).toMatchObject({
    status: 1,
    stdout: [
      `prod-eu: 1 series, 0 complete, 2 missing; nothing missing through ${addDays(yesterday, -2)}`,
      `  missing: prod-eu / none / all, ${addDays(yesterday, -1)} to ${yesterday}\n`,
    ].join("\n"),
  });
  const lab = await context.run(["status", "--project", "lab"]);
  expect(lab).toMatchObject({ status: 0, stdout: "lab: 1 series, 0 complete; no day is due\n" });
  const json = JSON.parse((await context.run(["status", "--json", "--project", "prod-*"])).stdout);
  expect(json).toMatchObject({
    projects: [{ project: "prod-us" }, { project: "prod-eu" }],
    gaps: [{ series: [{ project: "prod-eu" }] }, { series: [{ project: "prod-us" }] }],
    gapsLeftOut: 0,
  });

  const unknown = await context.run(["status", "--project", "prod-e"]);
  expect(unknown.status).toBe(2);
  expect(unknown.stderr).toContain('did you mean "prod-eu"?');
});
