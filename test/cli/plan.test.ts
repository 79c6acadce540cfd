// The command `plan`, and the warning of `check` about a night that is too long. Neither needs a database.

import { expect } from "vitest";
import { testDatabase } from "../support/database.ts";
import { programTest } from "./program-context.ts";
import { PRODUCTION, smallConfig } from "./small-config.ts";

const test = programTest(await testDatabase());

const NAMES = ["one", "two", "three"];
const PROJECTS = NAMES.map((name) => ({ ...PRODUCTION, id: name, name }));
const SLOW = { requestsPerSecond: 0.001 };

test("plan says how many requests a night takes, how long, and what a backfill would cost", async ({ context }) => {
  const emulator = await context.serve();
  const exports = [{ projects: NAMES, groupings: ["none", "model"], timezone: "UTC" }];
  await context.configure(
    smallConfig(emulator.url, { service: { requestsPerSecond: 0.1 }, projects: PROJECTS, exports }),
  );
  const range = ["--backfill", "--from", "2026-01-01", "--to", "2026-02-28"];

  const { status, stdout } = await context.run(["plan", ...range]);
  expect(status).toBe(0);
  expect(stdout).toMatch(
    /^nightly: 12 slices in 6 requests and 3 other calls: 2 min, from \d{4}-\d\d-\d\d 02:15 UTC to \S+ 02:16 UTC\n/,
  );
  expect(stdout).toContain("\nall exports: 9 calls a day, which take 2 min at 0.1 a second\n");
  expect(stdout).toContain(
    "\nbackfill of 2026-01-01 to 2026-02-28: 354 slices in 12 requests and 3 other calls: 3 min, if no day is stored yet;",
  );

  const json = JSON.parse((await context.run(["plan", ...range, "--json"])).stdout);
  expect(json).toMatchObject({
    requestsPerSecond: 0.1,
    exports: [{ job: "nightly", requests: 6, otherCalls: 3, slices: 12, seconds: 90, secondsBetween: 86_400 }],
    backfill: { start: "2026-01-01", end: "2026-02-28", requests: 12, slices: 354, seconds: 150 },
  });
  expect(emulator.requests).toEqual([]);
  expect(await context.run(["plan", "--from", "2026-01-01"])).toMatchObject({ status: 2 });
});

test("plan, check and a dry run say which key's own rate makes a night long", async ({ context }) => {
  const limits = [{ requestsPerSecond: 0.05 }, { requestsPerSecond: 0.01, maxConcurrent: 1 }, {}];
  const exports = [{ projects: NAMES, groupings: ["none", "model"], schedule: "0,1 * * * *", timezone: "UTC" }];
  const projects = PROJECTS.map((one, i) => ({ ...one, key: { env: `KEY_${i}`, ...limits[i] } }));
  await context.configure(smallConfig("http://127.0.0.1:1", { projects, exports }));
  const range = ["--from", "2026-01-01", "--to", "2026-01-31"];

  // Each project makes three calls, all at five a second by the rate of the installation.
  const { stdout } = await context.run(["plan", "--backfill", ...range]);
  const because = (calls: number) => `5 min because of the key of env KEY_1 (${calls} calls at 0.01 a second)`;
  expect(stdout).toContain(`nightly: 12 slices in 6 requests and 3 other calls: ${because(3)}, from`);
  expect(stdout).toContain(
    'does not end before the next run begins, after 1 min; any of these would do: "requestsPerSecond": 0.1 for the key of env KEY_1, or',
  );
  expect(stdout).toContain(`6 requests and 3 other calls: ${because(3)}, if no day is stored yet;`);
  expect(stdout).toMatch(
    /all exports: 432 calls a day, which take 4 h 0 min because of the key of env KEY_1 \(144 calls/,
  );
  expect(stdout).toContain(
    "an answer takes less than 100 s on average: at most 1 call with the key of env KEY_1 is made at once",
  );
  const keys = { KEY_0: "a", KEY_1: "b", KEY_2: "c" };
  expect((await context.run(["check", "--offline"], keys)).stdout).toContain(
    `warn export nightly: a run makes 9 calls, takes ${because(3)} and does not end before`,
  );
  const dryRun = await context.run(["backfill", "--dry-run", ...range]);
  expect(dryRun.stdout).toContain("in 6 requests: 3 min because of the key of env KEY_1 (2 calls at 0.01 a second)");
});

test("check warns of a night that can't end before the next begins, and says what would fit", async ({ context }) => {
  const exports = [{ projects: NAMES, groupings: ["none", "model", "tags", "method"] }];
  const warnings = async (service: object) => {
    await context.configure(
      smallConfig("http://127.0.0.1:1", { service: { ...service }, projects: PROJECTS, exports }),
    );
    const { stdout } = await context.run(["check", "--offline"], { USAGE_EXPORT_KEY: "k" });
    return stdout.match(/^ {2}warn .*/gm) ?? [];
  };
  expect(await warnings(SLOW)).toEqual([]);
  exports[0] = {
    projects: NAMES,
    groupings: ["none", "model", "tags", "method", "endpoint", "accessor", "deployment"],
  };
  const [warning] = await warnings({ requestsPerSecond: 0.0002 });
  expect(warning).toContain("export nightly: a run makes 24 calls, takes 33 h 20 min at 0.0002 a second");
  expect(warning).toContain('"groupings": ["none","model","tags","method"]');
});
