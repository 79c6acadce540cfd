// The command `check`: what it finds in the configuration, the database and the service.

import { sql } from "kysely";
import { expect } from "vitest";
import { z } from "zod";
import type { EmulatorOptions } from "../support/emulator.ts";
import { ageStoredData } from "./age-stored-data.ts";
import { databaseTest, type ProgramContext } from "./program-context.ts";
import { type ConfigPart, smallConfig } from "./small-config.ts";

const { test, db } = await databaseTest();

const Answer = z.array(
  z.strictObject({
    subject: z.string(),
    findings: z.array(z.strictObject({ what: z.string(), state: z.enum(["ok", "warn", "fail"]), text: z.string() })),
  }),
);

/** Each finding as a line that begins with its state. */
async function findings(context: ProgramContext, env = {}) {
  const { status, stdout } = await context.run(["check", "--json"], env);
  const lines = Answer.parse(JSON.parse(stdout)).flatMap(({ subject, findings }) =>
    findings.map(({ what, state, text }) => `${state} ${subject}: ${what}: ${text}`),
  );
  return { status, lines };
}

const DIARIZED = { name: "diarized", features: { diarize: true } };
const NO_DATABASE = { DATABASE_URL: "postgres://usage@127.0.0.1:1/usage" };

test("with a service that works, every finding is ok", async ({ context }) => {
  await context.setUp({ exports: [{ groupings: ["none", "model"], filters: [{ name: "all" }, DIARIZED] }] });
  const { status, stdout, stderr } = await context.run(["check"], { LOG_LEVEL: "warn" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toMatch(
    /^configuration\n {2}ok {3}file: jobs\.config\.json\ndatabase at DATABASE_URL\n {2}ok {3}schema: up to date\n/,
  );
  expect(stdout).toMatch(/\nproject production\n {2}ok {3}key: scopes member\n/);
  expect(stdout).not.toMatch(/^ {2}(?!ok )/m);
});

test("check finds missing rights of the role usage_reader until migrate grants them", async ({ context }) => {
  await context.setUp();
  await sql`revoke all on schema bi from usage_reader; revoke all on bi.runs from usage_reader`.execute(db);
  const readerFindings = async () => (await findings(context)).lines.filter((line) => line.includes("usage_reader"));
  expect(await readerFindings()).toEqual([
    "warn database at DATABASE_URL: usage_reader: the rights of this role or of PUBLIC are wrong, for example after a restore; run migrate, which corrects them",
  ]);
  expect(await context.run(["migrate"])).toMatchObject({ status: 0 });
  expect(await readerFindings()).toEqual([]);
});

test("check advises a longer window if the last reading of a day still changes numbers", async ({ context }) => {
  await context.setUp({ exports: [{ window: { days: 2 } }] });
  // Ageing moves what is stored to the day before. The emulator has other numbers for that day, so the next export changes them.
  for (let night = 0; night < 10; night += 1) {
    await ageStoredData(db, 1);
    await context.run(["export"]);
  }
  expect((await context.run(["check"])).stdout).toMatch(
    /^ {2}warn window of 2 days: may be too short: \d+ of the last 70 days still changed at their last reading/m,
  );
});

type Case = readonly [
  name: string,
  status: 0 | 1,
  found: RegExp,
  config: ConfigPart,
  service?: Partial<EmulatorOptions>,
];

const withFilter = (filter: object): ConfigPart => ({ exports: [{ filters: [filter] }] });
const TAGGED = { name: "tagged", dimensions: { tags: "prod" } };

const CASES: readonly Case[] = [
  [
    "a dialect that is not the configured one",
    1,
    /^fail project production: grouping model: .*service\.dialect/m,
    { exports: [{ groupings: ["model"] }] },
    { dialect: "2026" },
  ],
  [
    "a window that the service ignores",
    1,
    /^fail project production: window: asked for .* remove "window" from the export/m,
    {},
    { window: "ignored" },
  ],
  [
    "a filter that all usage meets",
    0,
    /^ok project production: filter tagged: all usage meets the filter/m,
    { service: { dialect: "auto" }, ...withFilter(TAGGED) },
    { usage: () => [{ requests: 5, tags: ["prod"], model: ["nova-3"] }] },
  ],
  [
    "a filter that no usage of the last 7 days fits",
    0,
    /: grouping none: 1 row yesterday[\s\S]*^warn project production: filter own: no usage meets the filter, though 7 of the days have some/m,
    withFilter({ name: "own", dimensions: { accessor: "nobody" } }),
  ],
];

test.for(CASES)("check reports %s", async ([, status, found, config, service], { context }) => {
  await context.setUp(config, service);
  const { lines, ...result } = await findings(context);
  expect(lines.join("\n")).toMatch(found);
  expect(result).toEqual({ status });
});

test("findings with the same cause share one line of text", async ({ context }) => {
  const exports = [{ groupings: ["none", "model", "tags"], filters: [{ name: "all" }, DIARIZED] }];
  const emulator = await context.setUp({ exports });
  let answers = 0;
  emulator.fault = ({ path }) =>
    path.includes("/usage/breakdown")
      ? { kind: "answer", status: 404, headers: { "dg-request-id": `r-${++answers}` }, body: "no such project" }
      : undefined;
  const { status, stdout } = await context.run(["check"]);
  expect(stdout.match(/no such project/g)).toHaveLength(1);
  const failed = /^ {2}FAIL grouping none, grouping model, grouping tags, window, filter diarized: .*no such project/m;
  expect(stdout).toMatch(failed);
  expect(status).toBe(1);
  const { lines } = await findings(context);
  expect(lines.filter((line) => line.includes("no such project"))).toHaveLength(5);
});

test("check checks the projects even if the database is unreachable", async ({ context }) => {
  await context.setUp();
  const { status, lines } = await findings(context, NO_DATABASE);
  expect(lines[1]).toMatch(/^fail database at DATABASE_URL: connection: .* can't be used: connect ECONNREFUSED/);
  expect(lines[2]).toBe("ok project production: key: scopes member");
  expect(status).toBe(1);
});

test("--offline checks only the configuration", async ({ context }) => {
  const emulator = await context.setUp();
  const result = await context.run(["check", "--offline"], NO_DATABASE);
  expect(result).toMatchObject({ status: 0, stdout: "configuration\n  ok   file: jobs.config.json\n", stderr: "" });
  expect(emulator.requests).toEqual([]);
});

test("check warns if a run would take longer than the time until the next run", async ({ context }) => {
  const exports = [{ groupings: ["none", "model", "tags"], schedule: "15,17 2 * * *", timezone: "UTC" }];
  const warnings = async (requestsPerSecond: number) => {
    await context.configure(smallConfig("http://127.0.0.1:1", { service: { requestsPerSecond }, exports }));
    const { status, stdout } = await context.run(["check", "--offline"]);
    expect(status).toBe(0);
    return stdout.match(/^ {2}warn .*/gm) ?? [];
  };
  // A run makes four calls: three breakdowns and the list of keys. The next run begins two minutes later.
  expect(await warnings(0.04)).toEqual([]);
  expect(await warnings(0.01)).toEqual([
    "  warn export nightly: a run makes 4 calls and takes 7 min at 0.01 a second, longer than the 2 min until the next run",
  ]);
});
