// Filters by features, tags and models that the service may not know. A filter that works is never refused, and an answer of a service
// that ignored the filter is never stored as the filter's numbers.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { modelId } from "../../../src/emulator/usage.ts";
import { makeDoubtsAnHourOlder } from "../../db/stored-usage.ts";
import type { Emulator, EmulatorOptions, FaultPlan } from "../../support/emulator.ts";
import { ageStoredData } from "../age-stored-data.ts";
import { statusBy } from "../evidence.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";
import { PROJECT_ID } from "../small-config.ts";

const { test, db } = await databaseTest();

const OK = { status: 0 };
const FAILED = { status: 1 };

/** The example in the service's public description: the answer of Get Fields for one project and one period. */
const PUBLIC_EXAMPLE = {
  tags: ["tag=dev", "tag=production"],
  models: [
    {
      ...{ name: "2-medical-nova", language: "en-MY", version: "2024-05-31.13574" },
      model_id: "1dbdfb4d-85b2-4659-9831-16b3c76229aa",
    },
  ],
  processing_methods: ["sync", "streaming"],
  features: ["punctuate", "smart_format"],
};

const fieldsAre =
  (fields: object): FaultPlan =>
  ({ path }) =>
    path.includes("/usage/fields") ? { kind: "body", change: () => fields } : undefined;

const TAGGED = [
  { requests: 5, model: ["nova-3"], tags: ["prod"] },
  { requests: 7, model: ["nova-2"], tags: ["staging"] },
];

const byTag = (tags: string) => ({ name: tags, dimensions: { tags } });
const byModel = (model: string) => ({ name: model, dimensions: { model } });
const DIARIZED = { name: "diarized", features: { diarize: true } };
const RARE = { name: "rare", features: { "aura-2": true } };

/** Serves TAGGED as `options` say. Configures an export with these filters, and with the dialect and the fields of the job in the last parameter. */
function setUp(
  context: ProgramContext,
  filters: readonly object[],
  options: Partial<EmulatorOptions> = {},
  { dialect = "interface", ...job }: Readonly<Record<string, unknown>> = {},
): Promise<Emulator> {
  return context.setUp({ service: { dialect }, exports: [{ filters, ...job }] }, { usage: () => TAGGED, ...options });
}

const calls = (emulator: Emulator, part: string) => emulator.requests.filter(({ path }) => path.includes(part)).length;

/** By filter, the stored requests of each day, such as "5 5" for two days. */
async function requestsByFilter(): Promise<Readonly<Record<string, string>>> {
  const { rows } = await sql<{ filter: string; requests: string }>`
    select filter, string_agg(requests::text, ' ' order by usage_date) as requests from bi.usage_filtered group by filter
  `.execute(db);
  return Object.fromEntries(rows.map(({ filter, requests }) => [filter, requests]));
}

test("the packaged configuration works with the public example of Get Fields", async ({ context }) => {
  const emulator = await context.serve({ fault: fieldsAre(PUBLIC_EXAMPLE) });
  const shipped = JSON.parse(await readFile(path.join(import.meta.dirname, "../../../jobs.config.json"), "utf8"));
  const service = { ...shipped.service, baseUrl: emulator.url, requestsPerSecond: 100 };
  const projects = [{ ...shipped.projects[0], id: PROJECT_ID }];
  await context.configure({ ...shipped, service, projects, rotations: [] });

  expect(await context.run(["check"])).toMatchObject({ ...OK, stdout: expect.not.stringMatching(/FAIL|warn /) });
  expect(await context.run(["export"])).toMatchObject(OK);
  const complete = { status: "complete" };
  expect(await statusBy(db, "filter")).toMatchObject({ all: complete, "diarized-listen": complete });
});

test("a feature that the service does not list is accepted if it changes the numbers", async ({ context }) => {
  const usage = () => [{ requests: 5, feature_set: ["aura-2"] }, { requests: 7 }];
  const emulator = await setUp(context, [RARE], { usage, fault: fieldsAre(PUBLIC_EXAMPLE) });
  const accepted = { ...OK, stderr: expect.not.stringContaining("does not list") };
  expect(await context.run(["export"])).toMatchObject(accepted);
  const asked = calls(emulator, "/usage/");
  expect(await context.run(["export"])).toMatchObject(OK);
  // The second run asks for the filtered breakdown, for the total to compare it with, and for the list of names.
  expect(calls(emulator, "/usage/")).toBe(asked + 3);
});

test("a filter that the numbers neither prove nor disprove is read with a warning", async ({ context }) => {
  await setUp(context, [RARE], { usage: () => [], fault: fieldsAre(PUBLIC_EXAMPLE) });
  const warning = expect.stringMatching(/"level":40.*"feature":"aura-2".*does not list the feature/);
  expect(await context.run(["export"])).toMatchObject({ ...OK, stderr: warning });
});

test("a filter by an unlisted tag without usage stays suspect, however often it is read", async ({ context }) => {
  await setUp(context, [byTag("prod"), byTag("prodd")]);
  expect(await context.run(["export"])).toMatchObject(FAILED);
  await makeDoubtsAnHourOlder(db);
  expect(await context.run(["export"])).toMatchObject(FAILED);

  expect(await requestsByFilter()).toEqual({ prod: "5 5" });
  const error = expect.stringMatching(/no usage meets the filter.*not list the tag "prodd"; did you mean "prod"\?/);
  expect(await statusBy(db, "filter")).toEqual({
    prod: { status: "complete", error: null },
    prodd: { status: "suspect", error },
  });
  const found = expect.stringMatching(/FAIL filter prodd: .*not list the tag "prodd".*did you mean "prod"\?/);
  expect(await context.run(["check"])).toMatchObject({ ...FAILED, stdout: found });
});

test("a tag is known in both forms, as listed (tag=production) and without the prefix (dev)", async ({ context }) => {
  const filters = [byTag("dev"), byTag("tag=production"), byTag("test")];
  await setUp(context, filters, { fault: fieldsAre(PUBLIC_EXAMPLE) });
  const { stdout } = await context.run(["check"]);
  expect(stdout.match(/does not list the tag "[^"]*"/g)).toEqual(['does not list the tag "test"']);
});

test("in dialect 2026 a filter by a model's name or id sends its id", async ({ context }) => {
  const filters = [byModel("nova-3"), byModel(modelId("nova-2"))];
  await setUp(context, filters, { dialect: "2026" }, { dialect: "2026" });
  expect(await context.run(["export"])).toMatchObject(OK);
  expect(await requestsByFilter()).toEqual({ "nova-3": "5 5", [modelId("nova-2")]: "7 7" });
  expect((await context.run(["check"])).stdout).toMatch(/ok {3}filter nova-3: the filter narrows the numbers/);
});

test("a filter by an unlisted model, or by a name that several models have, fails its export", async ({ context }) => {
  const models = ["1", "2"].map((version) => ({ name: "nova-3", language: "en", version, model_id: `id-${version}` }));
  const fault = fieldsAre({ ...PUBLIC_EXAMPLE, models });
  const filters = [byModel("nova-3"), byModel("nova-4"), byModel("id-1")];
  const emulator = await setUp(context, filters, { dialect: "2026", fault }, { dialect: "2026" });
  expect(await context.run(["export"])).toMatchObject(FAILED);
  expect(await statusBy(db, "filter")).toMatchObject({
    "nova-3": { status: "failed", error: expect.stringMatching(/2 models are called "nova-3" \(id-1, id-2\)/) },
    "nova-4": { status: "suspect", error: expect.stringMatching(/not list the model "nova-4".*mean "nova-3"\?/) },
  });
  expect(calls(emulator, "model=nova-3")).toBe(0);
});

test('`checkFeatures` "warn" turns the error about an unknown deployment into a warning', async ({ context }) => {
  const filters = [{ name: "own", dimensions: { deployment: "dedicated" } }];
  const usage = () => [{ requests: 3, deployment: "dedicated" }, { requests: 4 }];
  const emulator = await setUp(context, filters, { usage });
  const says = /dimensions\.deployment .*expected one of "self-hosted", "hosted", "beta"; got "dedicated"/;
  expect(await context.run(["export"])).toMatchObject({ status: 2, stderr: expect.stringMatching(says) });
  expect(emulator.requests).toEqual([]);

  await setUp(context, filters, { usage }, { checkFeatures: "warn" });
  const warning = expect.stringMatching(/"level":40.*"deployment":"dedicated".*does not list/);
  expect(await context.run(["export"])).toMatchObject({ ...OK, stderr: warning });
  expect(await requestsByFilter()).toEqual({ own: "3 3" });
});

// The configured dialect is the wrong one for this service, which therefore ignores `tags`.
test("while the service ignores a filter, its days are suspect", async ({ context }) => {
  const job = { window: { days: 3 }, groupings: ["none", "tags"] };
  await setUp(context, [{ name: "all" }, byTag("prod")], { dialect: "2026" }, job);
  // Two groupings: 6 slices of three days in the first run. A day later 8 of four days, because a suspect day is read again.
  const suspect = expect.stringMatching(/ [68] suspect(.*\n)+ {2}suspect: production .*: .*seems to ignore/);
  expect(await context.run(["export"])).toMatchObject({ ...FAILED, stdout: suspect });
  await ageStoredData(db, 1);
  expect(await context.run(["export"])).toMatchObject({ ...FAILED, stdout: suspect });

  expect(await requestsByFilter()).toEqual({});
  const error = /ignore the tag "prod".*without the filter the numbers are the same.*service\.dialect to "auto"/;
  expect(await statusBy(db, "filter")).toMatchObject({
    all: { status: "complete" },
    prod: { status: "suspect", error: expect.stringMatching(error) },
  });
  expect(await context.run(["status", "--project", "production"])).toMatchObject(FAILED);
});

test('with dialect "auto", an ignored filter makes the export probe for the dialect again', async ({ context }) => {
  const filters = [byTag("prod"), byModel("nova-2")];
  const { url } = await setUp(context, filters, { dialect: "2026" }, { dialect: "auto" });
  await sql`insert into usage_export.service_dialect (service, dialect) values (${url}, 'interface')`.execute(db);
  expect(await context.run(["export"])).toMatchObject(OK);
  expect(await requestsByFilter()).toEqual({ prod: "5 5", "nova-2": "7 7" });
});

test("a filter that matches all usage is accepted if the service knows its tag or feature", async ({ context }) => {
  const usage = () => [{ requests: 5, model: ["nova-3"], tags: ["prod"], feature_set: ["diarize"] }];
  await setUp(context, [{ name: "all" }, byTag("prod"), DIARIZED], { usage }, { dialect: "auto" });
  expect(await context.run(["export"])).toMatchObject(OK);
  expect(await requestsByFilter()).toEqual({ prod: "5 5", diarized: "5 5" });
});

test("a filter by a known tag and a known model is not doubted if it narrows the numbers", async ({ context }) => {
  await setUp(context, [{ name: "both", dimensions: { tags: "prod", model: "nova-3" } }]);
  expect(await context.run(["export"])).toMatchObject(OK);
  expect(await requestsByFilter()).toEqual({ both: "5 5" });
});

test("a filter without usage on a single day is stored at once", async ({ context }) => {
  await setUp(context, [DIARIZED], {}, { window: { days: 1 } });
  expect(await context.run(["export"])).toMatchObject(OK);
});

test("a filter without usage on several days is stored when a later run confirms it", async ({ context }) => {
  let usage: readonly object[] = TAGGED;
  await setUp(context, [DIARIZED], { usage: () => usage });
  for (let run = 0; run < 2; run++) {
    const suspect = expect.stringContaining("2 suspect");
    expect(await context.run(["export"])).toMatchObject({ ...FAILED, stdout: suspect });
  }
  const error = expect.stringMatching(/no usage meets the filter, though 2 of the days have some/);
  expect(await statusBy(db, "filter")).toEqual({ diarized: { status: "suspect", error } });
  await makeDoubtsAnHourOlder(db);
  expect(await context.run(["export"])).toMatchObject(OK);
  expect(await statusBy(db, "filter")).toEqual({ diarized: { status: "complete", error: null } });

  // From then on, one more day without usage is not suspect.
  const newest = sql`(select max(usage_date) from usage_export.slice)`;
  await sql`delete from usage_export.slice where usage_date = ${newest}`.execute(db);
  expect(await context.run(["export"])).toMatchObject(OK);
  usage = [{ requests: 9, model: ["nova-3"], feature_set: ["diarize"] }];
  expect(await context.run(["export"])).toMatchObject(OK);
  expect(await requestsByFilter()).toEqual({ diarized: "9 9" });
});

test("with `checkFeatures` off no filter is checked, and only its breakdown is requested", async ({ context }) => {
  const emulator = await setUp(context, [byTag("prod")], { dialect: "2026" }, { checkFeatures: "off" });
  expect(await context.run(["export"])).toMatchObject(OK);
  expect(calls(emulator, "/usage/")).toBe(1);
});

/** Requests for a misspelt feature get no usage: the service takes the unknown name for a feature that nobody used. */
const UNUSED: FaultPlan = ({ path }) =>
  path.includes("diarise") ? { kind: "body", change: (answer) => ({ ...answer, results: [] }) } : undefined;
const TYPO = { name: "typo", features: { diarise: true } };
const TAGGED_TYPO = { ...TYPO, dimensions: { tags: "prod" } };
const OTHER_DIALECT = { dialect: "2026" } as const;

test.for<readonly [what: string, options: Partial<EmulatorOptions>, job: object, error: string]>([
  ["a misspelt feature that the service ignores", {}, { filters: [TYPO] }, 'mean "diarize"'],
  ["a misspelt feature that nobody used", { fault: UNUSED }, { filters: [TYPO] }, 'mean "diarize"'],
  ["a misspelt feature beside a tag", {}, { filters: [TAGGED_TYPO] }, 'mean "diarize"'],
  ["a misspelt, unused feature beside a tag", { fault: UNUSED }, { filters: [TAGGED_TYPO] }, 'mean "diarize"'],
  ["a misspelt tag", {}, { filters: [byTag("prodd")] }, 'mean "prod"'],
  ["a tag in the wrong dialect", OTHER_DIALECT, { filters: [byTag("prod")] }, "service.dialect"],
  ["a model in the wrong dialect", OTHER_DIALECT, { groupings: ["model"] }, "service.dialect"],
  ["a service that does not group", { grouping: "ignored" }, { groupings: ["model"] }, "grouping"],
])("no slice is complete for %s, whatever the window", async ([, options, job, error], { context }) => {
  const usage = () => TAGGED.map((record) => ({ ...record, endpoint: "listen", method: "sync" }));
  for (const days of [1, 3]) {
    await context.setUp({ exports: [{ window: { days }, ...job }] }, { usage, ...options });
    for (let run = 0; run < 2; run++) {
      expect(await context.run(["export"])).toMatchObject(FAILED);
      await makeDoubtsAnHourOlder(db);
    }
    expect(Object.values(await statusBy(db, "filter"))).toEqual([
      { status: expect.stringMatching(/suspect|failed/), error: expect.stringContaining(error) },
    ]);
  }
});
