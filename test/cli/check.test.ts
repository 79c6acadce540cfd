// The command `check`: what it finds in the configuration, the database and the service.

import { sql } from "kysely";
import { expect } from "vitest";
import { z } from "zod";
import { testDatabase } from "../support/database.ts";
import type { EmulatorOptions } from "../support/emulator.ts";
import { PROJECT_ID, type ProgramContext, programTest } from "./program-context.ts";
import { PRODUCTION, smallConfig } from "./small-config.ts";

const database = await testDatabase();
const test = programTest(database);

const Answer = z.array(
  z.strictObject({
    subject: z.string(),
    findings: z.array(z.strictObject({ what: z.string(), state: z.enum(["ok", "warn", "fail"]), text: z.string() })),
  }),
);

/** Each finding as a line that begins with its state. */
async function findings(
  context: ProgramContext,
  env = {},
): Promise<{ readonly status: number | null; readonly lines: readonly string[] }> {
  const { status, stdout } = await context.run(["check", "--json"], env);
  const answer = Answer.parse(JSON.parse(stdout));
  return {
    status,
    lines: answer.flatMap(({ subject, findings }) =>
      findings.map(({ what, state, text }) => `${state} ${subject}: ${what}: ${text}`),
    ),
  };
}

const DIARIZED = { name: "diarized", features: { diarize: true } };

test("with a service that works, every finding is ok", async ({ context }) => {
  const emulator = await context.serve();
  const exports = [{ groupings: ["none", "model"], filters: [{ name: "all" }, DIARIZED] }];
  await context.configure(smallConfig(emulator.url, { exports }));

  const { status, stdout, stderr } = await context.run(["check"], { LOG_LEVEL: "warn" });

  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toMatch(
    /^configuration\n {2}ok {3}file: jobs\.config\.json\ndatabase at DATABASE_URL\n {2}ok {3}schema: up to date\n/,
  );
  expect(stdout).toMatch(/\nproject production\n {2}ok {3}key: scopes member\n/);
  expect(stdout).not.toMatch(/^ {2}(?!ok )/m);
});

test("missing rights of the role usage_reader, as after a restore, are found, and migrate grants them", async ({
  context,
}) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));
  await sql`revoke all on schema bi from usage_reader; revoke all on bi.runs from usage_reader`.execute(database.db);
  const ofReader = async () => (await findings(context)).lines.filter((line) => line.includes("usage_reader"));

  expect(await ofReader()).toEqual([
    "warn database at DATABASE_URL: usage_reader: its rights are not those it should have, as after a restore; run migrate, which grants them",
  ]);
  expect(await context.run(["migrate"])).toMatchObject({ status: 0 });
  expect(await ofReader()).toEqual([]);
});

type Trouble = {
  readonly emulator?: Partial<EmulatorOptions>;
  readonly config?: Parameters<typeof smallConfig>[1];
  readonly found: RegExp;
  readonly status?: number;
};

const TROUBLES: Readonly<Record<string, Trouble>> = {
  "a service of dialect 2026, and interface is configured": {
    emulator: { dialect: "2026" },
    config: { service: { dialect: "interface" }, exports: [{ groupings: ["model"] }] },
    found: /^fail project production: grouping model: .*service\.dialect/m,
  },
  "a service that ignores the window": {
    emulator: { window: "ignored" },
    found: /^fail project production: window: asked for .* export without "window"/m,
  },
  "a feature that the service does not know": {
    config: { exports: [{ filters: [{ name: "diarized", features: { diarise: true } }] }] },
    found: /^fail project production: filter diarized: .* "diarise"; did you mean "diarize"\?/m,
  },
  "a feature that the interface names, and a service that lists no features": {
    emulator: { fields: "missing" },
    config: { exports: [{ filters: [DIARIZED] }] },
    found: /^ok project production: filter diarized: the filter narrows the numbers/m,
    status: 0,
  },
  "a feature that nobody uses": {
    config: { exports: [{ filters: [{ name: "odd", features: { "aura-2": true } }] }] },
    found: /^fail project production: filter odd: no usage .* the service does not list the feature "aura-2"/m,
  },
  "a filter that the service ignores": {
    emulator: { dialect: "2026", usage: () => [{ requests: 5, tags: ["prod"] }, { requests: 7 }] },
    config: {
      service: { dialect: "interface" },
      exports: [{ filters: [{ name: "production", dimensions: { tags: "prod" } }] }],
    },
    found: /^fail project production: filter production: .*ignore the tag "prod".*service\.dialect/m,
  },
  "a filter that all usage meets": {
    emulator: { usage: () => [{ requests: 5, tags: ["prod"], model: ["nova-3"] }] },
    config: {
      service: { dialect: "auto" },
      exports: [{ filters: [{ name: "production", dimensions: { tags: "prod" } }] }],
    },
    found: /^ok project production: filter production: all usage meets the filter/m,
    status: 0,
  },
  "a filter that no usage fits": {
    config: { exports: [{ filters: [{ name: "own", dimensions: { accessor: "nobody" } }] }] },
    found: /^warn project production: filter own: no usage with the filter on any of 7 days/m,
    status: 0,
  },
  "a project that the key does not belong to": {
    config: { projects: [{ ...PRODUCTION, id: "project-of-others" }] },
    found: /^fail project production: grouping none: .*404/m,
  },
};

test.for(Object.entries(TROUBLES))("%s", async ([_, { emulator, config, found, status = 1 }], { context }) => {
  const { url } = await context.serve(emulator);
  await context.configure(smallConfig(url, config));
  const { lines, ...result } = await findings(context);
  expect(lines.join("\n")).toMatch(found);
  expect(result).toEqual({ status });
});

test("findings with the same cause are printed as one line, and in JSON each is a finding", async ({ context }) => {
  const emulator = await context.serve();
  let n = 0;
  emulator.fault = ({ path }) =>
    path.includes("/usage/breakdown")
      ? { kind: "answer", status: 404, headers: { "dg-request-id": `r-${++n}` }, body: "no such project" }
      : undefined;
  const exports = [{ groupings: ["none", "model", "tags"], filters: [{ name: "all" }, DIARIZED] }];
  await context.configure(smallConfig(emulator.url, { exports }));

  const { status, stdout } = await context.run(["check"]);

  expect(stdout.match(/no such project/g)).toHaveLength(1);
  expect(stdout).toMatch(
    /^ {2}FAIL grouping none, grouping model, grouping tags, window, filter diarized: .*no such project/m,
  );
  expect(status).toBe(1);
  const { lines } = await findings(context);
  expect(lines.filter((line) => line.includes("no such project"))).toHaveLength(5);
});

test("the finding for a key that may not read usage names the missing scope", async ({ context }) => {
  const secret = context.newSecret();
  const emulator = await context.serve({ consoleKeys: [{ secret, projectId: PROJECT_ID, scopes: ["keys:read"] }] });
  await context.configure(smallConfig(emulator.url));
  const { status, lines } = await findings(context, { USAGE_EXPORT_KEY: secret });
  expect(lines.at(-1)).toMatch(/^fail project production: key: .*scopes keys:read; reading usage needs project:read/);
  expect(status).toBe(1);
});

test("an unreachable database is one finding, and the projects are still checked", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));
  const { status, lines } = await findings(context, { DATABASE_URL: "postgres://usage@127.0.0.1:1/usage" });
  expect(lines[1]).toMatch(/^fail database at DATABASE_URL: connection: .* can't be used: connect ECONNREFUSED/);
  expect(lines[2]).toBe("ok project production: key: scopes member");
  expect(status).toBe(1);
});

test("--offline checks only the configuration", async ({ context }) => {
  const emulator = await context.serve();
  await context.configure(smallConfig(emulator.url));
  const result = await context.run(["check", "--offline"], { DATABASE_URL: "postgres://usage@127.0.0.1:1/usage" });
  expect(result).toMatchObject({ status: 0, stdout: "configuration\n  ok   file: jobs.config.json\n", stderr: "" });
  expect(emulator.requests).toEqual([]);
});

test("check warns of a night that takes longer than until the next", async ({ context }) => {
  const warnings = async (requestsPerSecond: number) => {
    const exports = [{ groupings: ["none", "model", "tags"], schedule: "15,17 2 * * *", timezone: "UTC" }];
    await context.configure(smallConfig("http://127.0.0.1:1", { service: { requestsPerSecond }, exports }));
    const { status, stdout } = await context.run(["check", "--offline"], { USAGE_EXPORT_KEY: "k" });
    expect(status).toBe(0);
    return stdout.match(/^ {2}warn .*/gm) ?? [];
  };
  // Three requests and the list of keys, two minutes apart.
  expect(await warnings(0.04)).toEqual([]);
  expect(await warnings(0.01)).toEqual([
    "  warn export nightly: this night has 4 calls, at 0.01 a second it takes 7 min, longer than the 2 min until the next",
  ]);
});
