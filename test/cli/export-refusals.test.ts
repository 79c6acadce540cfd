// Answers that can't be right, and services that do not answer: the last good numbers stay, and coverage says why there
// are no newer ones.

import { sql } from "kysely";
import { expect } from "vitest";
import { changeRows, type Fault } from "../../src/emulator/faults.ts";
import { testDatabase } from "../support/database.ts";
import { PRODUCTION, smallConfig } from "./small-config.ts";
import { PROJECT_ID, worldTest } from "./world.ts";

const database = await testDatabase();
const { db } = database;
const test = worldTest(database);

const json = (body: string, headers = {}): Fault => ({
  kind: "answer",
  status: 200,
  headers: { "content-type": "application/json", ...headers },
  body,
});

/** Each fault with words by which a person can tell what happened. */
const DOUBTFUL: Readonly<Record<string, readonly [Fault, RegExp]>> = {
  html: [
    { kind: "answer", status: 200, headers: { "content-type": "text/html" }, body: "<html>Log in</html>" },
    /HTML page/,
  ],
  "empty object": [json("{}"), /expected an array at "results", got nothing/],
  null: [json("null"), /expected an object, got null/],
  list: [json("[]"), /expected an object, got an array/],
  "no body": [json(""), /empty/],
  "cut json": [json('{"start":"20'), /not valid JSON/],
  "other bytes": [
    {
      kind: "answer",
      status: 200,
      headers: { "content-type": "application/json" },
      body: new Uint8Array([0x22, 0xff, 0x22]),
    },
    /UTF-8/,
  ],
  compressed: [json("{}", { "content-encoding": "gzip" }), /compressed \(gzip\)/],
  negative: [
    changeRows((rows) => rows.map((row) => ({ ...row, hours: -1 }))),
    /results\[0\].hours: expected 0 or more, got -1/,
  ],
  infinite: [
    { kind: "body", change: (answer) => JSON.stringify(answer).replace(/"hours":[^,]*/, '"hours":1e999') },
    /hours: expected a finite number, got 1e999/,
  ],
  text: [changeRows((rows) => rows.map((row) => ({ ...row, requests: "12" }))), /requests: expected a number, got/],
  twice: [
    changeRows((rows) => rows.flatMap((row) => [row, { ...row, requests: 1 }])),
    /two rows with different numbers for endpoint "listen"/,
  ],
  weekly: [
    { kind: "body", change: (answer) => ({ ...answer, resolution: { units: "week", amount: 1 } }) },
    /expected buckets of one day.*week/,
  ],
  "other days": [
    { kind: "body", change: (answer) => ({ ...answer, start: "2020-01-01", end: "2020-01-02" }) },
    /asked for .* names 2020-01-01 to 2020-01-02/,
  ],
  "no dimension": [
    changeRows((rows) => rows.map(({ grouping: { start, end }, ...row }) => ({ ...row, grouping: { start, end } }))),
    /no row has the dimension "endpoint"/,
  ],
  redirect: [{ kind: "answer", status: 302, headers: { location: "https://elsewhere.test/" } }, /redirect/],
  "not found": [{ kind: "answer", status: 404, body: "no such thing here" }, /404.*no such thing here/],
};

test("a doubtful answer changes no number, and coverage says what is wrong with it", async ({ world }) => {
  const cases = Object.keys(DOUBTFUL);
  const emulator = await world.serve({
    usage: () => cases.map((accessor) => ({ accessor, endpoint: "listen", requests: 5, hours: 1.5 })),
  });
  // A series for each case: its filter's value tells the fault which one it is.
  const filters = cases.map((name) => ({ name, dimensions: { accessor: name } }));
  await world.configure(smallConfig(emulator.url, { exports: [{ groupings: ["endpoint"], filters }] }));
  expect(await world.run(["export"])).toMatchObject({ status: 0 });
  const good = await storedRows();

  emulator.fault = ({ path }) => DOUBTFUL[new URL(path, emulator.url).searchParams.get("accessor") ?? ""]?.[0];
  expect(await world.run(["export"])).toMatchObject({ status: 1 });

  expect(good).toHaveLength(2 * cases.length);
  expect(await storedRows()).toEqual(good);
  const expected = Object.entries(DOUBTFUL).map(([filter, [, words]]) => [
    filter,
    { status: "failed", error: expect.stringMatching(words) },
  ]);
  expect(await lastCoverage()).toEqual(Object.fromEntries(expected));
});

test("a service that gives no answer costs its own series only", async ({ world }) => {
  const emulator = await world.serve();
  await world.configure(
    smallConfig(emulator.url, {
      service: { timeoutSeconds: 1, maxConcurrent: 8 },
      exports: [{ groupings: ["none", "endpoint", "method", "deployment", "tags"] }],
    }),
  );
  await world.run(["export"]);
  const good = await storedRows();

  const faults: Readonly<Record<string, Fault>> = {
    endpoint: { kind: "answer", status: 500, body: "out of order" },
    method: { kind: "drop" },
    deployment: { kind: "cut" },
    tags: { kind: "stall" },
  };
  emulator.fault = ({ path }) => faults[new URL(path, emulator.url).searchParams.get("grouping") ?? ""];
  const result = await world.run(["export"]);

  expect(result.status).toBe(1);
  for (const grouping of Object.keys(faults)) {
    // Once in the good run.
    expect(emulator.requests.filter(({ path }) => path.includes(`grouping=${grouping}`))).toHaveLength(1 + 5);
  }
  expect(await storedRows()).toEqual(good);
  expect(await lastCoverage("grouping")).toEqual({
    none: { status: "complete", error: null },
    endpoint: { status: "failed", error: expect.stringMatching(/500.*out of order.*5 attempts/) },
    method: { status: "failed", error: expect.stringMatching(/connection.*5 attempts/) },
    deployment: { status: "failed", error: expect.stringMatching(/connection.*5 attempts/) },
    tags: { status: "failed", error: expect.stringMatching(/within 1 s.*5 attempts/) },
  });
});

test("a service that does not know windows is found out", async ({ world }) => {
  const emulator = await world.serve({ window: "ignored" });
  await world.configure(smallConfig(emulator.url));

  expect(await world.run(["export"])).toMatchObject({ status: 1 });

  expect(await storedRows()).toEqual([]);
  expect(await lastCoverage()).toEqual({
    all: {
      status: "failed",
      error: expect.stringMatching(/asked for .* names .* as its window.*export without "window"/),
    },
  });
});

test.for([
  ["interface", "2026"],
  ["2026", "interface"],
] as const)(
  "a service of another dialect is found out: asked in %s, it knows %s",
  async ([dialect, other], { world }) => {
    const emulator = await world.serve({ dialect: other });
    await world.configure(
      smallConfig(emulator.url, { service: { dialect }, exports: [{ groupings: ["none", "model"] }] }),
    );

    expect(await world.run(["export"])).toMatchObject({ status: 1 });

    expect(await lastCoverage("grouping")).toEqual({
      none: { status: "complete", error: null },
      model: { status: "failed", error: expect.stringMatching(/dimension "model".*service.dialect/) },
    });
  },
);

test("a project whose key is refused does not cost the other one its numbers", async ({ world }) => {
  const second = world.newSecret();
  const emulator = await world.serve({ consoleKeys: [{ secret: second, projectId: "project-2", scopes: ["member"] }] });
  const projects = [
    { ...PRODUCTION, key: { env: "WRONG_KEY" } },
    { id: "project-2", name: "staging", key: { env: "SECOND_KEY" } },
  ];
  await world.configure(
    smallConfig(emulator.url, {
      projects,
      exports: [{ projects: ["production", "staging"], groupings: ["none", "tags"] }],
    }),
  );

  const result = await world.run(["export"], { WRONG_KEY: world.newSecret(), SECOND_KEY: second });

  expect(result).toMatchObject({ status: 1, stdout: expect.stringMatching(/4 slices complete, 0 suspect, 4 failed/) });
  expect(await lastCoverage("project")).toEqual({
    production: { status: "failed", error: expect.stringMatching(/401.*Invalid credentials/) },
    staging: { status: "complete", error: null },
  });
  const { rows } = await sql`select distinct project_id from bi.usage_total`.execute(db);
  expect(rows).toEqual([{ project_id: "project-2" }]);
});

test("a key that may not read usage is told which scope it lacks", async ({ world }) => {
  const secret = world.newSecret();
  const emulator = await world.serve({ consoleKeys: [{ secret, projectId: PROJECT_ID, scopes: ["keys:read"] }] });
  await world.configure(smallConfig(emulator.url));

  expect(await world.run(["export"], { USAGE_EXPORT_KEY: secret })).toMatchObject({ status: 1 });

  expect(await lastCoverage()).toEqual({ all: { status: "failed", error: expect.stringContaining("project:read") } });
});

test("a feature that the service does not know is not asked for, and the near miss is named", async ({ world }) => {
  const emulator = await world.serve();
  const filters = [{ name: "all" }, { name: "diarized", features: { diarise: true } }];
  await world.configure(smallConfig(emulator.url, { exports: [{ filters }] }));

  expect(await world.run(["export"])).toMatchObject({ status: 1 });

  expect(emulator.requests.filter(({ path }) => path.includes("diarise"))).toEqual([]);
  expect(await lastCoverage()).toEqual({
    all: { status: "complete", error: null },
    diarized: { status: "failed", error: expect.stringMatching(/no feature "diarise".*did you mean "diarize"\?/) },
  });
});

test.for([
  ["that lists no features", { fields: "missing" }, {}],
  ["that does not list the feature, where that is only to be told", {}, { checkFeatures: "warn" }],
] as const)("a service %s is asked all the same, with a warning", async ([_, options, job], { world }) => {
  const emulator = await world.serve(options);
  const filters = [{ name: "new", features: { brand_new: true } }];
  await world.configure(smallConfig(emulator.url, { exports: [{ ...job, filters }] }));

  expect(await world.run(["export"])).toMatchObject({
    status: 0,
    stderr: expect.stringMatching(/"level":40.*feature/),
  });

  expect(await lastCoverage()).toEqual({ new: { status: "complete", error: null } });
});

test("an empty answer where rows were is doubted once, and believed when the next run gets it too", async ({
  world,
}) => {
  let usage = [{ endpoint: "listen", requests: 5 }];
  const emulator = await world.serve({ usage: () => usage });
  await world.configure(smallConfig(emulator.url));
  await world.run(["export"]);
  const good = await storedRows();

  usage = [];
  expect(await world.run(["export"])).toMatchObject({ status: 1, stdout: expect.stringContaining("2 suspect") });
  expect(await storedRows()).toEqual(good);
  expect(await lastCoverage()).toEqual({ all: { status: "suspect", error: expect.stringContaining("no rows") } });

  expect(await world.run(["export"])).toMatchObject({ status: 0 });
  const { rows } = await sql`select * from bi.usage_total`.execute(db);
  expect(rows).toEqual([]);
  expect(await lastCoverage()).toEqual({ all: { status: "complete", error: null } });
});

test("rows that come back before an empty answer was confirmed were never away", async ({ world }) => {
  let usage = [{ endpoint: "listen", requests: 5 }];
  const emulator = await world.serve({ usage: () => usage });
  await world.configure(smallConfig(emulator.url));
  await world.run(["export"]);
  const good = await storedRows();
  const [full] = [usage];

  usage = [];
  await world.run(["export"]);
  usage = full;
  expect(await world.run(["export"])).toMatchObject({ status: 0 });

  expect(await storedRows()).toEqual(good);
  expect(await lastCoverage()).toEqual({ all: { status: "complete", error: null } });
});

async function storedRows() {
  const { rows } = await sql`
    select xmin::text, r.* from usage_export.snapshot_row r order by series_id, usage_date, group_id
  `.execute(db);
  return rows;
}

/** By filter or grouping; every day of a window has the same fate. */
async function lastCoverage(by: "filter" | "grouping" | "project" = "filter") {
  const { rows } = await sql<{ name: string; status: string; error: string | null }>`
    select distinct ${sql.ref(by)} as name, status, error from bi.coverage
  `.execute(db);
  return Object.fromEntries(rows.map(({ name, ...rest }) => [name, rest]));
}
