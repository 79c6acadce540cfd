// Filters by features, tags and models that the service may not know. A filter that works is not refused, and an answer that ignores
// a filter is not stored as the filter's numbers.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { modelId } from "../../../src/emulator/usage.ts";
import { makeDoubtsAnHourOlder } from "../../db/stored-usage.ts";
import { testDatabase } from "../../support/database.ts";
import type { Emulator, Fault } from "../../support/emulator.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { PROJECT_ID, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { lastCoverage } from "../stored-rows.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

/** The example in the service's public description: the answer of Get Fields for one project and one period. */
const PUBLIC_EXAMPLE = {
  tags: ["tag=dev", "tag=production"],
  models: [
    {
      name: "2-medical-nova",
      language: "en-MY",
      version: "2024-05-31.13574",
      model_id: "1dbdfb4d-85b2-4659-9831-16b3c76229aa",
    },
  ],
  processing_methods: ["sync", "streaming"],
  features: ["punctuate", "smart_format"],
};

function answerFieldsBy(emulator: Emulator, fields: object): void {
  const fault: Fault = { kind: "body", change: () => fields };
  emulator.fault = ({ path }) => (path.includes("/usage/fields") ? fault : undefined);
}

function calls(emulator: Emulator, part: string): number {
  return emulator.requests.filter(({ path }) => path.includes(part)).length;
}

test("the packaged configuration works with the public example of Get Fields", async ({ context }) => {
  const emulator = await context.serve();
  answerFieldsBy(emulator, PUBLIC_EXAMPLE);
  const shipped = JSON.parse(await readFile(path.join(import.meta.dirname, "../../../jobs.config.json"), "utf8"));
  const [project] = shipped.projects;
  await context.configure({
    ...shipped,
    service: { ...shipped.service, baseUrl: emulator.url, requestsPerSecond: 100 },
    projects: [{ ...project, id: PROJECT_ID }],
    rotations: [],
  });

  const checked = await context.run(["check"]);
  expect(checked.stdout).not.toMatch(/FAIL|warn (?!role)/);
  expect(checked.status).toBe(0);
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await lastCoverage(db)).toMatchObject({
    all: { status: "complete" },
    "diarized-listen": { status: "complete" },
  });
});

const RARE = { name: "rare", features: { "aura-2": true } };
const rareConfig = (url: string, filters: readonly object[] = [RARE]) => smallConfig(url, { exports: [{ filters }] });

test("a feature that is not listed is known if it changes the numbers", async ({ context }) => {
  const emulator = await context.serve({
    usage: () => [
      { requests: 5, feature_set: ["aura-2"] },
      { requests: 7, feature_set: [] },
    ],
  });
  answerFieldsBy(emulator, PUBLIC_EXAMPLE);
  await context.configure(rareConfig(emulator.url));
  const first = await context.run(["export"]);
  expect({ status: first.status, unknown: first.stderr.includes("feature unknown") }).toEqual({
    status: 0,
    unknown: false,
  });

  const asked = calls(emulator, "/usage/");
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  // One series, one window: its breakdown, the total that it is compared with, and the names.
  expect(calls(emulator, "/usage/")).toBe(asked + 3);
});

test("a filter by a feature that the numbers neither prove nor disprove is read, with a warning", async ({
  context,
}) => {
  const emulator = await context.serve({ usage: () => [] });
  answerFieldsBy(emulator, PUBLIC_EXAMPLE);
  await context.configure(rareConfig(emulator.url));
  const { status, stderr } = await context.run(["export"]);
  expect(status).toBe(0);
  expect(stderr).toMatch(/"level":40.*"feature":"aura-2".*does not list the feature/);
});

const TAGGED = [
  { requests: 5, model: ["nova-3"], tags: ["prod"] },
  { requests: 7, model: ["nova-2"], tags: ["staging"] },
];

const byTag = (tags: string) => ({ name: tags, dimensions: { tags } });
const byModel = (model: string) => ({ name: model, dimensions: { model } });

/** The usage requests of each day, in the order of the days, by filter. */
async function filtered(): Promise<Readonly<Record<string, string>>> {
  const { rows } = await sql<{ filter: string; requests: string }>`
    select filter, string_agg(requests::text, ' ' order by usage_date) as requests from bi.usage_filtered group by filter
  `.execute(db);
  return Object.fromEntries(rows.map(({ filter, requests }) => [filter, requests]));
}

test("a filter by an unlisted tag without usage is doubted, however often it is read, and a similar tag is suggested", async ({
  context,
}) => {
  const emulator = await context.serve({ usage: () => TAGGED });
  await context.configure(smallConfig(emulator.url, { exports: [{ filters: [byTag("prod"), byTag("prodd")] }] }));

  expect(await context.run(["export"])).toMatchObject({ status: 1 });
  await makeDoubtsAnHourOlder(db);
  expect(await context.run(["export"])).toMatchObject({ status: 1 });

  expect(await filtered()).toEqual({ prod: "5 5" });
  expect(await lastCoverage(db)).toEqual({
    prod: { status: "complete", error: null },
    prodd: {
      status: "suspect",
      error: expect.stringMatching(/no usage with the filter.*not list the tag "prodd"; did you mean "prod"\?/),
    },
  });
  const { status, stdout } = await context.run(["check"]);
  expect(status).toBe(1);
  expect(stdout).toMatch(/FAIL filter prodd: .*not list the tag "prodd".*did you mean "prod"\?/);
});

test("a tag is known in both forms, as listed (tag=production) and without the prefix (dev)", async ({ context }) => {
  const emulator = await context.serve({ usage: () => TAGGED });
  answerFieldsBy(emulator, PUBLIC_EXAMPLE);
  const filters = [byTag("dev"), byTag("tag=production"), byTag("test")];
  await context.configure(smallConfig(emulator.url, { exports: [{ filters }] }));
  const { stdout } = await context.run(["check"]);
  expect(stdout.match(/does not list the tag "[^"]*"/g)).toEqual(['does not list the tag "test"']);
});

test("in dialect 2026 a filter by a model sends its id, whether the name or the id is configured", async ({
  context,
}) => {
  const emulator = await context.serve({ dialect: "2026", usage: () => TAGGED });
  const service = { dialect: "2026" };
  const filters = [byModel("nova-3"), byModel(modelId("nova-2"))];
  await context.configure(smallConfig(emulator.url, { service, exports: [{ filters }] }));

  expect(await context.run(["export"])).toMatchObject({ status: 0 });

  expect(await filtered()).toEqual({ "nova-3": "5 5", [modelId("nova-2")]: "7 7" });
  expect((await context.run(["check"])).stdout).toMatch(/ok {3}filter nova-3: the filter narrows the numbers/);
});

test("a filter by an unlisted model, or by a name that several models have, fails", async ({ context }) => {
  const emulator = await context.serve({ dialect: "2026", usage: () => TAGGED });
  const models = ["1", "2"].map((version) => ({ name: "nova-3", language: "en", version, model_id: `id-${version}` }));
  answerFieldsBy(emulator, { ...PUBLIC_EXAMPLE, models });
  const service = { dialect: "2026" };
  const filters = [byModel("nova-3"), byModel("nova-4"), byModel("id-1")];
  await context.configure(smallConfig(emulator.url, { service, exports: [{ filters }] }));

  expect(await context.run(["export"])).toMatchObject({ status: 1 });

  expect(await lastCoverage(db)).toMatchObject({
    "nova-3": { status: "failed", error: expect.stringMatching(/2 models are called "nova-3" \(id-1, id-2\)/) },
    "nova-4": { status: "suspect", error: expect.stringMatching(/not list the model "nova-4".*mean "nova-3"\?/) },
  });
  expect(calls(emulator, "model=nova-3")).toBe(0);
});

test('a value that the interface does not name is an error, or with "checkFeatures": "warn" a warning', async ({
  context,
}) => {
  const emulator = await context.serve({ usage: () => [{ requests: 3, deployment: "dedicated" }, { requests: 4 }] });
  const filters = [{ name: "own", dimensions: { deployment: "dedicated" } }];
  const configure = (job: object) => context.configure(smallConfig(emulator.url, { exports: [{ ...job, filters }] }));
  await configure({});
  expect(await context.run(["export"])).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(
      /dimensions\.deployment .*expected one of "self-hosted", "hosted", "beta"; got "dedicated"/,
    ),
  });
  expect(emulator.requests).toEqual([]);

  await configure({ checkFeatures: "warn" });
  const { status, stderr } = await context.run(["export"]);
  expect(status).toBe(0);
  expect(stderr).toMatch(/"level":40.*"deployment":"dedicated".*does not list/);
  expect(await filtered()).toEqual({ own: "3 3" });
});

/** The wrong dialect for a service that speaks "2026", which therefore ignores `tags`. */
const WRONG = { service: { dialect: "interface" } };

test("while the service ignores a filter, its days are suspect and none of its numbers are shown", async ({
  context,
}) => {
  const emulator = await context.serve({ dialect: "2026", usage: () => TAGGED });
  const exports = [{ window: { days: 3 }, groupings: ["none", "tags"], filters: [{ name: "all" }, byTag("prod")] }];
  await context.configure(smallConfig(emulator.url, { ...WRONG, exports }));

  const suspect = / [68] suspect(.*\n)+ {2}suspect: production .*: .*seems to ignore/;
  expect(await context.run(["export"])).toMatchObject({ status: 1, stdout: expect.stringMatching(suspect) });
  await ageStoredData(db, 1);
  expect(await context.run(["export"])).toMatchObject({ status: 1, stdout: expect.stringMatching(suspect) });

  expect(await filtered()).toEqual({});
  expect(await lastCoverage(db)).toMatchObject({
    all: { status: "complete" },
    prod: {
      status: "suspect",
      error: expect.stringMatching(
        /ignore the tag "prod".*without the filter the numbers are the same.*"auto" as service\.dialect/,
      ),
    },
  });
});

test('with dialect "auto", an ignored filter causes a new probe', async ({ context }) => {
  const emulator = await context.serve({ dialect: "2026", usage: () => TAGGED });
  await sql`
    insert into usage_export.service_dialect (service, dialect) values (${emulator.url}, 'interface')
  `.execute(db);
  const exports = [{ filters: [byTag("prod"), byModel("nova-2")] }];
  await context.configure(smallConfig(emulator.url, { service: { dialect: "auto" }, exports }));
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await filtered()).toEqual({ prod: "5 5", "nova-2": "7 7" });
});

test("a filter that matches all usage is accepted if the service knows its name, and a probe shows the dialect of the name", async ({
  context,
}) => {
  const usage = [{ requests: 5, model: ["nova-3"], tags: ["prod"], feature_set: ["diarize"] }];
  const emulator = await context.serve({ usage: () => usage });
  const filters = [{ name: "all" }, byTag("prod"), { name: "diarized", features: { diarize: true } }];
  const service = { dialect: "auto" };
  await context.configure(smallConfig(emulator.url, { service, exports: [{ filters }] }));
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await filtered()).toEqual({ prod: "5 5", diarized: "5 5" });
});

test("a filter without usage on several days is stored when a later run confirms it", async ({ context }) => {
  let usage: typeof TAGGED = TAGGED;
  const emulator = await context.serve({ usage: () => usage });
  const filters = [{ name: "diarized", features: { diarize: true } }];
  await context.configure(smallConfig(emulator.url, { exports: [{ filters }] }));

  expect(await context.run(["export"])).toMatchObject({ status: 1, stdout: expect.stringContaining("2 suspect") });
  expect(await lastCoverage(db)).toEqual({
    diarized: { status: "suspect", error: expect.stringMatching(/no usage with the filter on any of 2 days/) },
  });
  expect(await context.run(["export"])).toMatchObject({ status: 1, stdout: expect.stringContaining("2 suspect") });
  await makeDoubtsAnHourOlder(db);
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await lastCoverage(db)).toEqual({ diarized: { status: "complete", error: null } });

  // From then on, one more day without usage is not suspect.
  await sql`delete from usage_export.slice where usage_date = (select max(usage_date) from usage_export.slice)`.execute(
    db,
  );
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  usage = [{ requests: 9, model: ["nova-3"], tags: [], feature_set: ["diarize"] } as (typeof TAGGED)[number]];
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(await filtered()).toEqual({ diarized: "9 9" });
});

test("with `checkFeatures` off no filter is checked, and only its breakdown is requested", async ({ context }) => {
  const emulator = await context.serve({ dialect: "2026", usage: () => TAGGED });
  const exports = [{ checkFeatures: "off", filters: [byTag("prod")] }];
  await context.configure(smallConfig(emulator.url, { ...WRONG, exports }));
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(calls(emulator, "/usage/")).toBe(1);
});

/** Requests with these parameters get no usage, as from a service that takes an unknown name for a feature that nobody used. */
const nothingWith =
  (part: string): Emulator["fault"] =>
  ({ path }) =>
    path.includes(part) ? { kind: "body", change: (answer) => ({ ...answer, results: [] }) } : undefined;

const MISSPELT = { name: "typo", features: { diarise: true } };

test.for<readonly [string, object, Emulator["fault"], object, string]>([
  ["a misspelt feature that the service ignores", {}, undefined, { filters: [MISSPELT] }, 'mean "diarize"'],
  ["a misspelt feature that nobody used", {}, nothingWith("diarise"), { filters: [MISSPELT] }, 'mean "diarize"'],
  [
    "a misspelt feature that nobody used, beside a tag",
    {},
    nothingWith("diarise"),
    { filters: [{ ...MISSPELT, dimensions: { tags: "prod" } }] },
    'mean "diarize"',
  ],
  [
    "a misspelt feature that is ignored, beside a tag",
    {},
    undefined,
    { filters: [{ ...MISSPELT, dimensions: { tags: "prod" } }] },
    'mean "diarize"',
  ],
  ["a misspelt tag", {}, undefined, { filters: [byTag("prodd")] }, 'mean "prod"'],
  ["a tag of the other dialect", { dialect: "2026" }, undefined, { filters: [byTag("prod")] }, "service.dialect"],
  ["a model of the other dialect", { dialect: "2026" }, undefined, { groupings: ["model"] }, "service.dialect"],
  ["a service that does not group", { grouping: "ignored" }, undefined, { groupings: ["model"] }, "grouping"],
])(
  "%s is no usage that is stored as complete, in a window of one day and in a wider one",
  async ([, service, fault, job, error], { context }) => {
    for (const days of [1, 3]) {
      const usage = () => TAGGED.map((record) => ({ ...record, endpoint: "listen", method: "sync" }));
      const emulator = await context.serve({ usage, ...service });
      emulator.fault = fault;
      const options = { service: { dialect: "interface" }, exports: [{ window: { days }, ...job }] };
      await context.configure(smallConfig(emulator.url, options));
      for (let run = 0; run < 2; run++) {
        expect(await context.run(["export"])).toMatchObject({ status: 1 });
        await makeDoubtsAnHourOlder(db);
      }
      const stored = Object.values(await lastCoverage(db));
      expect(stored).toEqual([
        { status: expect.stringMatching(/suspect|failed/), error: expect.stringContaining(error) },
      ]);
    }
  },
);
