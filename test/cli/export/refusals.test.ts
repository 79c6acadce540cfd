// A bad or refused answer changes no number. The last good ones stay, and coverage says why there are no newer ones.

import { sql } from "kysely";
import { expect } from "vitest";
import { makeDoubtsAnHourOlder } from "../../db/stored-usage.ts";
import type { EmulatorOptions, Fault } from "../../support/emulator.ts";
import { changeRows } from "../../support/emulator.ts";
import { rowsAsWritten, statusBy } from "../evidence.ts";
import { databaseTest } from "../program-context.ts";
import { PRODUCTION } from "../small-config.ts";

const { test, db } = await databaseTest();

const OK = { status: 0 };
const FAILED = { status: 1 };

/** Each fault, with words that the error in bi.coverage must contain. */
const DOUBTFUL: Readonly<Record<string, readonly [Fault, RegExp]>> = {
  html: [
    { kind: "answer", status: 200, headers: { "content-type": "text/html" }, body: "<html>Log in</html>" },
    /HTML page/,
  ],
  null: [{ kind: "body", change: () => null }, /expected an object, got null/],
  "cut json": [{ kind: "body", change: (json) => JSON.stringify(json).slice(0, 15) }, /not valid JSON/],
  twice: [
    changeRows((rows) => rows.flatMap((row) => [row, { ...row, requests: 1 }])),
    /two rows with different numbers for endpoint listen/,
  ],
  redirect: [{ kind: "answer", status: 302, headers: { location: "https://elsewhere.test/" } }, /redirect/],
  "not found": [{ kind: "answer", status: 404, body: "no such thing here" }, /404.*no such thing here/],
};

test("a doubtful answer changes no number", async ({ context }) => {
  const cases = Object.keys(DOUBTFUL);
  // Each case has a series of its own, which filters by the name of the case.
  const filters = cases.map((name) => ({ name, dimensions: { accessor: name } }));
  const usage = () => cases.map((accessor) => ({ accessor, endpoint: "listen", requests: 5, hours: 1.5 }));
  const emulator = await context.setUp({ exports: [{ groupings: ["endpoint"], filters }] }, { usage });
  expect(await context.run(["export"])).toMatchObject(OK);
  const good = await rowsAsWritten(db);
  expect(good).toHaveLength(2 * cases.length);

  emulator.fault = ({ path }) => DOUBTFUL[new URL(path, emulator.url).searchParams.get("accessor") ?? ""]?.[0];
  expect(await context.run(["export"])).toMatchObject(FAILED);

  expect(await rowsAsWritten(db)).toEqual(good);
  const expected = Object.entries(DOUBTFUL).map(([filter, [, words]]) => [
    filter,
    { status: "failed", error: expect.stringMatching(words) },
  ]);
  expect(await statusBy(db, "filter")).toEqual(Object.fromEntries(expected));
});

test("if the key of one project is refused, the other project is still exported", async ({ context }) => {
  const second = context.newSecret();
  const projects = [
    { ...PRODUCTION, key: { env: "WRONG_KEY" } },
    { id: "project-2", name: "staging", key: { env: "SECOND_KEY" } },
  ];
  await context.setUp(
    { projects, exports: [{ projects: ["production", "staging"], groupings: ["none", "tags"] }] },
    { consoleKeys: [{ secret: second, projectId: "project-2", scopes: ["member"] }] },
  );
  const result = await context.run(["export"], { WRONG_KEY: context.newSecret(), SECOND_KEY: second });
  expect(result).toMatchObject({ ...FAILED, stdout: expect.stringMatching(/4 slices complete, 0 suspect, 4 failed/) });
  // The output has the refusal once, although several requests were not made because of it.
  expect(result.stdout.match(/401/g)).toHaveLength(1);
  expect(await statusBy(db, "project")).toEqual({
    production: { status: "failed", error: expect.stringMatching(/401.*Invalid credentials/) },
    staging: { status: "complete", error: null },
  });
  const { rows } = await sql`select distinct project_id from bi.usage_total`.execute(db);
  expect(rows).toEqual([{ project_id: "project-2" }]);
});

const WITH_AURA = [{ requests: 5, feature_set: ["aura-2"] }, { requests: 7 }];

test.for([
  ["that lists no features", { fields: "missing", usage: () => WITH_AURA }, {}, "aura-2", true],
  ['that does not list the feature and "checkFeatures": "warn"', {}, { checkFeatures: "warn" }, "brand_new", false],
] as const)("a service %s is still asked for the filter", async ([_, options, job, feature, isStored], { context }) => {
  const filters = [{ name: "new", features: { [feature]: true } }];
  await context.setUp({ exports: [{ ...job, filters }] }, options);
  expect(await context.run(["export"])).toMatchObject({
    ...(isStored ? OK : FAILED),
    stderr: expect.stringMatching(/"level":40.*feature/),
  });
  const doubted = { status: "suspect", error: expect.stringContaining("ignore") };
  expect(await statusBy(db, "filter")).toEqual({ new: isStored ? { status: "complete", error: null } : doubted });
  await makeDoubtsAnHourOlder(db);
  expect(await context.run(["export"])).toMatchObject(OK);
  // After the confirmation, a day that is read anew is not doubted.
  const newest = sql`(select max(usage_date) from usage_export.slice)`;
  await sql`delete from usage_export.slice where usage_date = ${newest}`.execute(db);
  expect(await context.run(["export"])).toMatchObject(OK);
});

const TAGLESS: Partial<EmulatorOptions> = {
  usage: () => [
    { endpoint: "listen", method: "sync", requests: 3 },
    { endpoint: "speak", method: "sync", requests: 4 },
  ],
};

test("an answer with a total instead of groups is refused", async ({ context }) => {
  const part = { exports: [{ groupings: ["none", "endpoint", "tags"] }] };
  await context.setUp(part, TAGLESS);
  expect(await context.run(["export"])).toMatchObject(OK);
  await context.setUp(part, { ...TAGLESS, grouping: "ignored" });
  expect(await context.run(["export"])).toMatchObject({ ...FAILED, stdout: expect.stringContaining("4 failed") });

  const refused = (grouping: string, other: string) => ({
    status: "failed",
    error: expect.stringMatching(`^no row has a value of "${grouping}", nor has any row of a request by ${other}: `),
  });
  expect(await statusBy(db, "grouping")).toEqual({
    endpoint: refused("endpoint", "method"),
    tags: refused("tags", "endpoint"),
    none: { status: "complete", error: null },
  });
  const { rows } = await sql`select distinct endpoint, requests from bi.usage_by_endpoint order by 1`.execute(db);
  expect(rows).toEqual([
    { endpoint: "listen", requests: "3" },
    { endpoint: "speak", requests: "4" },
  ]);
});

test("if a project uses no tags, one more call proves that its answer by tags is right", async ({ context }) => {
  const emulator = await context.setUp({ exports: [{ groupings: ["none", "tags", "accessor"] }] }, TAGLESS);
  expect(await context.run(["export"])).toMatchObject(OK);
  expect(await statusBy(db, "grouping")).toMatchObject({ tags: { status: "complete", error: null } });
  const { rows } = await sql`select distinct tags, requests from bi.usage_by_tags`.execute(db);
  expect(rows).toEqual([{ tags: null, requests: "7" }]);
  expect(emulator.requests.filter(({ path }) => path.includes("grouping=endpoint"))).toHaveLength(1);
  expect((await context.run(["check"])).stdout).toMatch(/^ {2}ok {3}grouping tags: 1 row yesterday/m);
});

test("if a project uses no tags, its filtered series share one more call", async ({ context }) => {
  const filters = ["listen", "speak"].map((endpoint) => ({ name: endpoint, dimensions: { endpoint } }));
  const emulator = await context.setUp(
    { exports: [{ groupings: ["tags"], filters: [{ name: "all" }, ...filters] }] },
    TAGLESS,
  );
  expect(await context.run(["export"])).toMatchObject(OK);
  const witnesses = emulator.requests.filter(({ path }) => path.includes("grouping=endpoint"));
  // One call is for all usage, and one for both filters.
  expect(witnesses.map(({ path }) => /[?&]endpoint=/.test(path)).sort()).toEqual([false, true]);
});
