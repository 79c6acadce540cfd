// What the program makes of a valid configuration, and how an error shows where the file is wrong.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { loadConfig } from "../../src/config/config.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { errorsFor, messageFor, parse, parseText, SAMPLE, sampleWith } from "./sample-config.ts";

const MINIMAL = {
  service: { baseUrl: "https://api.example.com" },
  projects: [{ id: "p1", name: "one", key: { env: "KEY" } }],
};
// Parts of parsed configurations: defaults, and values that several entries share.
const PARSED_SERVICE = {
  ...{ baseUrl: "https://api.example.com", authScheme: "Token", dialect: "auto" },
  ...{ requestsPerSecond: 5, maxConcurrent: 4, timeoutSeconds: 30 },
};
const ALL_USAGE = { name: "all", features: {}, dimensions: {} };
const DIARIZED = {
  name: "diarized",
  features: { diarize: "true" },
  dimensions: { feature_set: "a", endpoint: "listen" },
};
const PARSED_EXPORT = {
  ...{ source: "usage", timezone: "UTC", filters: [ALL_USAGE], fanOuts: [] },
  ...{ checkFeatures: "error", emptyGuard: "confirm", undated: "snapshot", cliffGuard: "confirm" },
};
const PARSED_BUDGET = { metric: "requests", amount: "1", period: "month", thresholds: ["80", "100"] };
const PARSED_ROTATION = {
  ...{ timezone: "UTC", comment: "exporter", scopes: ["member"], tags: [] },
  ...{ maxAgeDays: 30, graceDays: 7, deliver: [], retire: "keep" },
};

test("a configuration with every field is parsed into the form that the program uses", () => {
  const production = { id: "11111111-2222-3333-4444-555555555555", name: "production" };
  const staging = { id: "project_b", name: "staging" };
  const lab = { id: "project_c", name: "lab" };
  const ofStaging = { project: "staging", projects: [staging] };

  const { file: _, ...config } = parse(SAMPLE);
  expect(config).toEqual({
    service: { ...PARSED_SERVICE, dialect: "interface" },
    projects: [
      { ...production, key: { env: "PRODUCTION_KEY" } },
      { ...staging, key: { file: "/srv/usage/secrets/staging.key" } },
      { ...lab, key: { rotation: "lab-key", first: { env: "LAB_KEY" } } },
    ],
    exports: [
      {
        ...PARSED_EXPORT,
        ...{ name: "nightly", schedule: "15 2 * * *", timezone: "Europe/Vienna", projects: [production, staging] },
        window: { days: 7, today: true },
        groupings: ["none", "accessor", "model"],
        filters: [ALL_USAGE, DIARIZED],
        fanOuts: [{ dimension: "accessor", atMost: 20 }],
        ...{ checkFeatures: "warn", emptyGuard: "off", cliffGuard: "off", undated: "day" },
      },
      { ...PARSED_EXPORT, name: "weekly", schedule: "0 5 * * mon", projects: [lab], groupings: ["tags"] },
      {
        ...PARSED_EXPORT,
        ...{ name: "bills", source: "billing", schedule: "45 2 * * *", projects: [production] },
        window: { days: 7, today: false },
        groupings: ["none", "line_item", "line_item,tags", "tags"],
        filters: [
          ALL_USAGE,
          { name: "aura", features: {}, dimensions: { line_item: "sync::aura-2", deployment: "dedicated" } },
        ],
      },
    ],
    rotations: [
      {
        ...{ name: "lab-key", schedule: "0 4 * * *", timezone: "Asia/Tokyo", project: lab, comment: "lab exporter" },
        ...{ scopes: ["member", "usage:read"], tags: ["exporter"], maxAgeDays: 20, graceDays: 5, expiresInDays: 26 },
        deliver: [{ file: "/srv/usage/secrets/lab.key" }, { command: ["vault-put", "lab"], timeoutSeconds: 10 }],
        retire: "delete",
      },
      { ...PARSED_ROTATION, name: "production-key", schedule: "@daily", project: production },
      {
        ...{ ...PARSED_ROTATION, name: "fleet/project_b", jobName: "fleet", schedule: "0 4 * * *", project: staging },
        createWith: { file: "/srv/usage/creators/project_b" },
        deliver: [
          { file: "/srv/usage/keys/project_b.key" },
          { command: ["vault", "put", "usage/project_b"], timeoutSeconds: 30 },
        ],
      },
    ],
    prices: [
      {
        ...{ metric: "hours", model: "nova-*", currency: "USD", price: "0.0077", per: "minute" },
        ...{ endpoint: "listen", method: "streaming", deployment: "hosted" },
        ...{ from: "2026-01-01", until: "2026-12-31", tiers: [{ above: "10000", price: "0.0065" }] },
      },
      {
        ...{ metric: "requests", model: "*", currency: "EUR", price: null, per: "1" },
        ...{ from: "2026-02-01", tiers: [] },
      },
    ],
    budgets: [
      {
        ...{ name: "limit", project: "production", projects: [production], scope: "all" },
        ...{ metric: "hours", amount: "100", period: "month", thresholds: ["12.5", "100"] },
      },
      {
        ...{ name: "daily", project: "production", projects: [production], scope: "tag", scopeValue: "batch" },
        ...{ metric: "cost", currency: "USD", amount: "9", period: "day", from: "2026-02-03" },
        thresholds: ["80", "100"],
      },
      { ...PARSED_BUDGET, name: "lab", ...ofStaging, scope: "key", scopeValue: "lab-key" },
      { ...PARSED_BUDGET, name: "nova", ...ofStaging, scope: "model", scopeValue: "nova-3" },
    ],
    ...{ discovery: [], anomalies: { sensitivity: "high" }, runs: { keepDays: 90 }, worker: { drainSeconds: 45 } },
    monitor: {
      ...{ host: "0.0.0.0", port: 0, publicUrl: "https://usage.example.com/" },
      access: { basic: { username: "ops", password: { file: "/srv/usage/secrets/monitor.password" } } },
    },
    notify: {
      webhook: { env: "NOTICES_URL" },
      deadMan: { file: "/srv/usage/secrets/dead-man.url" },
      report: "0 8 * * 1",
    },
  });
});

test("a configuration needs only a service and a project", () => {
  const { file: _, ...config } = parse(MINIMAL);
  expect(config).toEqual({
    ...{ service: PARSED_SERVICE, projects: MINIMAL.projects, discovery: [] },
    ...{ exports: [], rotations: [], prices: [], budgets: [] },
    ...{ anomalies: { sensitivity: "normal" }, runs: { keepDays: 400 }, worker: { drainSeconds: 20 } },
    ...{ monitor: { host: "127.0.0.1", port: 9464 }, notify: {} },
  });
});

test.each([
  ["https://api.example.com/", "https://api.example.com"],
  ["https://gateway.example.com/speech//", "https://gateway.example.com/speech"],
  ["HTTPS://API.Example.com:8443", "https://api.example.com:8443"],
  ["http://localhost:8080", "http://localhost:8080"],
  ["http://127.8.9.10/x", "http://127.8.9.10/x"],
  ["http://[::1]:9000", "http://[::1]:9000"],
])("the address %s is used as %s", (baseUrl, used) => {
  expect(parseText(sampleWith("service.baseUrl", baseUrl)).service.baseUrl).toBe(used);
});

test.each([
  ["projects[0].id", "a"],
  ["projects[0].id", "A-z_9".padEnd(128, "x")],
  ["projects[0].key", { env: "MYPROVIDERPRODUCTIONKEY2" }],
  ["projects[0].key", { file: "/run/secrets/9f8e7d6c5b4a39281706f5e4d3c2b1a0/key" }],
  ["projects[2].key.first", { file: "first.key" }],
  ["service.requestsPerSecond", 0.1],
  ["service.requestsPerSecond", 10_000],
  ["service.dialect", "2026"],
  ["exports[0].window", { days: 366 }],
  ["exports[1].schedule", "*/30 * * * * *"],
  ["exports[1].filters", [{ name: "german", features: { language: "de" } }]],
  ["exports[1].filters", [{ name: "odd", features: { "aura-2": true, "Numerals.v2": true, "2x_speed": false } }]],
  ["exports[1].filters", [DIARIZED]],
  ["exports[0].filters[1].dimensions.deployment", "dedicated"],
  ["exports[1].filters", [{ name: "Ünïcode 日本 name", dimensions: { tags: "a b" } }]],
  ["exports[0].filters[2]", { each: "accessor" }],
  ["budgets[0]", { name: "dollars", metric: "cost", currency: "USD", amount: 1, project: "production" }],
  ["budgets[0]", { name: "key", metric: "requests", amount: 1, project: "production", key: "k" }],
  ["budgets[0]", { name: "model", metric: "cost", currency: "EUR", amount: 1, project: "production", model: "nova-3" }],
  ["monitor", { host: "0.0.0.0", access: "none" }],
  ["notify", { deadMan: { env: "PING_URL" } }],
  ["rotations[0].graceDays", 0],
  ["rotations[0].expiresInDays", undefined],
])("%s may be %j", (place, value) => {
  const text = sampleWith(place, value);
  // In dialect 2026 no filter by feature_set is possible.
  const isIn2026 = place === "service.dialect";
  expect(messageFor(isIn2026 ? text.replace('"feature_set": "a"', '"model": "a"') : text)).toBe("");
});

test("each project of a rotation of many has its own key", () => {
  const key = { rotation: "fleet", first: { file: "/run/first/{id}" } };
  expect(parseText(sampleWith("projects[1].key", key)).projects[1]?.key).toEqual({
    ...{ rotation: "fleet/project_b" },
    first: { file: "/run/first/project_b" },
  });
});

test("all wrong fields are named at once in the order of the file", () => {
  const placesOf = (value: unknown) => errorsFor(JSON.stringify(value)).map((line) => line.split(" ")[1]);
  const job = { name: "x", schedule: "0 2 * * *", projects: ["tow"], groupings: ["none", "none"] };

  const places = placesOf({ ...MINIMAL, exports: [{ ...job, schedule: "never", filters: [] }], monitor: { prot: 1 } });
  expect(places).toEqual(["exports[0].schedule", "exports[0].filters", "monitor.prot"]);
  expect(placesOf({ ...MINIMAL, exports: [job] })).toEqual(["exports[0].projects[0]", "exports[0].groupings[1]"]);
  // A missing companion of a field is an error even beside a wrong value.
  expect(placesOf({ ...MINIMAL, monitor: { host: "0.0.0.0", publicUrl: "?" }, notify: { report: "never" } })).toEqual([
    ...["monitor.host", "monitor.publicUrl", "notify.report", "notify.report"],
  ]);
});

test("the message names the file, the number of errors and the line of each", () => {
  expect(messageFor(sampleWith("monitor.port", -1)).split("\n")).toEqual([
    "jobs.config.json has 1 error:",
    expect.stringMatching(/^- monitor\.port \(line \d+\): expected a whole number from 0 to 65535; got -1$/),
  ]);
});

test("a missing field has the line of the object that lacks it", () => {
  expect(errorsFor('{\n "projects": [{ "id": "p", "name": "p", "key": { "env": "K" } }],\n "service": {}\n}')).toEqual([
    "- service.baseUrl (line 3): missing; expected a string",
  ]);
});

test("a feature named file is not taken for the file of a secret", () => {
  const features = { file: "nova" };
  const job = { name: "nightly", schedule: "@daily", projects: ["one"], groupings: ["none"] };
  const exports = [{ ...job, filters: [{ name: "odd", features }] }];
  expect(parse({ ...MINIMAL, exports }).exports[0]?.filters[0]?.features).toEqual(features);
});

const folder = temporaryFolder(afterAll);

async function writeConfig(name: string, content: string | Uint8Array): Promise<string> {
  await writeFile(path.join(folder, name), content);
  return path.join(folder, name);
}

const EXAMPLE = path.join(import.meta.dirname, "../../jobs.config.json");

test("relative paths in the file start at its folder, wherever the program runs", async () => {
  const config = await loadConfig(await writeConfig("good.json", JSON.stringify(SAMPLE)));
  expect(config.projects[1]?.key).toEqual({ file: path.join(folder, "secrets/staging.key") });
});

test("in the packaged example only the project's id is missing", async () => {
  const said = /has 1 error:\n- projects\[0\]\.id \(line \d+\): expected your project's id at the service/;
  await expect(loadConfig(EXAMPLE)).rejects.toMatchObject({ code: "config", message: expect.stringMatching(said) });
});

test("the error for a missing file says how to make it or name another", async () => {
  const file = path.join(folder, "none.json");
  const message = `the configuration ${file} does not exist; make one with: usage-export init, or name another with --config FILE`;
  await expect(loadConfig(file)).rejects.toMatchObject({ code: "config", message });
});

test("the error for a file in another encoding says to save it as UTF-8", async () => {
  const file = await writeConfig("utf16.json", Buffer.from(`\uFEFF${JSON.stringify(SAMPLE)}`, "utf16le"));
  const message = expect.stringContaining("save it as UTF-8");
  await expect(loadConfig(file)).rejects.toMatchObject({ code: "config", message });
});

const PRICE = { metric: "hours", model: "nova-3", currency: "USD", price: "0.0077", from: "2026-01-01" };
/** Parses prices from JSON text, in which a number may have more digits than a double. */
const pricesOf = (text: string) => parseText(sampleWith("prices", "@").replace('"@"', text)).prices;

test("a price keeps every digit, as a number and as text", () => {
  const digits = fc
    .tuple(fc.bigInt({ min: 1n, max: 10n ** 27n }), fc.integer({ min: 1, max: 27 }))
    .map(([whole, places]) => {
      const text = String(whole * 10n + 1n).padStart(places + 1, "0");
      return `${text.slice(0, -places)}.${text.slice(-places)}`;
    });
  fc.assert(
    fc.property(digits, (text) => {
      const others = `"metric":"hours","model":"m","currency":"USD","from":"2026-01-01"`;
      for (const written of [text, `"${text}"`]) {
        expect(pricesOf(`[{${others},"price":${written}}]`)).toMatchObject([{ price: text }]);
      }
    }),
  );
  expect(pricesOf(`[${JSON.stringify({ ...PRICE, price: "@" }).replace('"@"', "25e-4")}]`)).toMatchObject([
    { price: "0.0025" },
  ]);
});
