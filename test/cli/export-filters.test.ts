// Filters by names that the service may not know: what is good is not refused, and what it does not know is not taken for
// numbers.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import type { Fault } from "../../src/emulator/faults.ts";
import type { Emulator } from "../../src/emulator/server.ts";
import { testDatabase } from "../support/database.ts";
import { smallConfig } from "./small-config.ts";
import { lastCoverage } from "./stored-state.ts";
import { PROJECT_ID, worldTest } from "./world.ts";

const database = await testDatabase();
const { db } = database;
const test = worldTest(database);

/** The answer that the service's public description shows: one project's, of one period. */
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

test("the configuration that is shipped works with the public example of Get Fields", async ({ world }) => {
  const emulator = await world.serve();
  answerFieldsBy(emulator, PUBLIC_EXAMPLE);
  const shipped = JSON.parse(await readFile(path.join(import.meta.dirname, "../../jobs.config.json"), "utf8"));
  const [project] = shipped.projects;
  await world.configure({
    ...shipped,
    service: { ...shipped.service, baseUrl: emulator.url, requestsPerSecond: 100 },
    projects: [{ ...project, id: PROJECT_ID }],
    rotations: [],
  });

  const checked = await world.run(["check"]);
  expect(checked.stdout).not.toMatch(/FAIL|warn/);
  expect(checked.status).toBe(0);
  expect(await world.run(["export"])).toMatchObject({ status: 0 });
  expect(await lastCoverage(db)).toMatchObject({
    all: { status: "complete" },
    "diarized-listen": { status: "complete" },
  });
});

const RARE = { name: "rare", features: { "aura-2": true } };
const rareConfig = (url: string, filters: readonly object[] = [RARE]) => smallConfig(url, { exports: [{ filters }] });

test("a feature that was listed once is known ever after, and is not asked about again", async ({ world }) => {
  const emulator = await world.serve();
  answerFieldsBy(emulator, { features: ["aura-2", "Numerals.v2"] });
  await world.configure(rareConfig(emulator.url));
  expect(await world.run(["export"])).toMatchObject({ status: 0 });
  answerFieldsBy(emulator, PUBLIC_EXAMPLE);
  const asked = calls(emulator, "/usage/fields");
  const other = { name: "other", features: { "Numerals.v2": true } };
  await world.configure(rareConfig(emulator.url, [RARE, other]));

  const { status, stderr } = await world.run(["export"]);

  expect({ status, unknown: stderr.includes("feature unknown") }).toEqual({ status: 0, unknown: false });
  expect(calls(emulator, "/usage/fields")).toBe(asked);
  expect(await lastCoverage(db)).toMatchObject({ rare: { status: "complete" }, other: { status: "complete" } });
});

test("a feature that is not listed and narrows the numbers is known by that", async ({ world }) => {
  const emulator = await world.serve({
    usage: () => [
      { requests: 5, feature_set: ["aura-2"] },
      { requests: 7, feature_set: [] },
    ],
  });
  answerFieldsBy(emulator, PUBLIC_EXAMPLE);
  await world.configure(rareConfig(emulator.url));
  const first = await world.run(["export"]);
  expect({ status: first.status, unknown: first.stderr.includes("feature unknown") }).toEqual({
    status: 0,
    unknown: false,
  });

  const asked = calls(emulator, "/usage/");
  expect(await world.run(["export"])).toMatchObject({ status: 0 });
  // One series, one window: its breakdown and nothing else.
  expect(calls(emulator, "/usage/")).toBe(asked + 1);
});

test("a feature of which the numbers tell nothing is asked for, with a warning", async ({ world }) => {
  const emulator = await world.serve({ usage: () => [] });
  answerFieldsBy(emulator, PUBLIC_EXAMPLE);
  await world.configure(rareConfig(emulator.url));
  const { status, stderr } = await world.run(["export"]);
  expect(status).toBe(0);
  expect(stderr).toMatch(/"level":40.*"feature":"aura-2".*"state":"unproved"/);
});
