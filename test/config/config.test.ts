import { expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { errorsFor, messageFor, SAMPLE, sampleWith } from "./sample-config.ts";

const OPTIONS = { source: "jobs.config.json", baseDir: "/srv/usage" };

const MINIMAL = {
  service: { baseUrl: "https://api.example.com" },
  projects: [{ id: "p1", name: "one", key: { env: "KEY" } }],
};

function parse(value: unknown) {
  return parseConfig(JSON.stringify(value), OPTIONS);
}

test("a configuration with every field is parsed into the form that the program uses", () => {
  const production = { id: "11111111-2222-3333-4444-555555555555", name: "production" };
  const staging = { id: "project_b", name: "staging" };
  const lab = { id: "project_c", name: "lab" };

  const { file: _, ...config } = parse(SAMPLE);
  expect(config).toEqual({
    service: {
      baseUrl: "https://api.example.com",
      authScheme: "Token",
      dialect: "interface",
      requestsPerSecond: 5,
      maxConcurrent: 4,
      timeoutSeconds: 30,
    },
    projects: [
      { ...production, key: { env: "PRODUCTION_KEY" } },
      { ...staging, key: { file: "/srv/usage/secrets/staging.key" } },
      { ...lab, key: { rotation: "lab-key", first: { env: "LAB_KEY" } } },
    ],
    exports: [
      {
        name: "nightly",
        source: "usage",
        schedule: "15 2 * * *",
        timezone: "Europe/Vienna",
        projects: [production, staging],
        window: { days: 7, today: true },
        groupings: ["none", "accessor", "model"],
        filters: [
          { name: "all", features: {}, dimensions: {} },
          { name: "diarized", features: { diarize: "true" }, dimensions: { endpoint: "listen", feature_set: "a" } },
        ],
        fanOuts: [{ dimension: "accessor", atMost: 20 }],
        checkFeatures: "warn",
        emptyGuard: "off",
        undated: "snapshot",
        cliffGuard: "off",
      },
      {
        name: "weekly",
        source: "usage",
        schedule: "0 5 * * mon",
        timezone: "UTC",
        projects: [lab],
        groupings: ["tags"],
        filters: [{ name: "all", features: {}, dimensions: {} }],
        fanOuts: [],
        checkFeatures: "error",
        emptyGuard: "confirm",
        undated: "snapshot",
        cliffGuard: "confirm",
      },
      {
        name: "bills",
        source: "billing",
        schedule: "45 2 * * *",
        timezone: "UTC",
        projects: [production],
        window: { days: 7, today: false },
        groupings: ["none", "line_item", "line_item,tags"],
        filters: [
          { name: "all", features: {}, dimensions: {} },
          { name: "aura", features: {}, dimensions: { line_item: "sync::aura-2", deployment: "dedicated" } },
        ],
        fanOuts: [],
        checkFeatures: "error",
        emptyGuard: "confirm",
        undated: "snapshot",
        cliffGuard: "confirm",
      },
    ],
    rotations: [
      {
        name: "lab-key",
        schedule: "0 4 * * *",
        timezone: "Asia/Tokyo",
        project: lab,
        comment: "lab exporter",
        scopes: ["member", "usage:read"],
        tags: ["exporter"],
        maxAgeDays: 20,
        graceDays: 5,
        expiresInDays: 26,
        deliver: [{ file: "/srv/usage/secrets/lab.key" }, { command: ["vault-put", "lab"], timeoutSeconds: 10 }],
        retire: "delete",
      },
      {
        name: "production-key",
        schedule: "@daily",
        timezone: "UTC",
        project: production,
        comment: "exporter",
        scopes: ["member"],
        tags: [],
        maxAgeDays: 30,
        graceDays: 7,
        deliver: [],
        retire: "keep",
      },
      {
        name: "fleet/project_b",
        group: "fleet",
        schedule: "0 4 * * *",
        timezone: "UTC",
        project: staging,
        createWith: { file: "/srv/usage/creators/project_b" },
        comment: "exporter",
        scopes: ["member"],
        tags: [],
        maxAgeDays: 30,
        graceDays: 7,
        deliver: [
          { file: "/srv/usage/keys/project_b.key" },
          { command: ["vault", "put", "usage/project_b"], timeoutSeconds: 30 },
        ],
        retire: "keep",
      },
    ],
    prices: [
      {
        metric: "hours",
        model: "nova-*",
        conditions: { endpoint: "listen", method: "streaming", deployment: "hosted" },
        currency: "USD",
        price: "0.0077",
        per: "minute",
        from: "2026-01-01",
        until: "2026-12-31",
        tiers: [{ above: "10000", price: "0.0065" }],
      },
      {
        metric: "requests",
        model: "*",
        conditions: {},
        currency: "EUR",
        price: null,
        per: "1",
        from: "2026-02-01",
        tiers: [],
      },
    ],
    budgets: [
      {
        name: "limit",
        project: "production",
        projects: [production],
        scope: "all",
        metric: "hours",
        amount: "100",
        period: "month",
        thresholds: ["12.5", "100"],
      },
    ],
    discovery: [],
    anomalies: {
      sensitivity: "normal",
    },
    runs: { keepDays: 90 },
    worker: { drainSeconds: 45 },
    monitor: {
      host: "0.0.0.0",
      port: 0,
      publicUrl: "https://usage.example.com/",
      access: {
        basic: { username: "ops", password: { file: "/srv/usage/secrets/monitor.password" } },
      },
    },
    notify: {
      webhook: { env: "NOTICES_URL" },
      deadMan: { file: "/srv/usage/secrets/dead-man.url" },
    },
  });
});

test("a service and a project are enough, and all other fields have defaults", () => {
  const { file: _, ...config } = parse(MINIMAL);
  expect(config).toEqual({
    service: {
      baseUrl: "https://api.example.com",
      authScheme: "Token",
      dialect: "auto",
      requestsPerSecond: 5,
      maxConcurrent: 4,
      timeoutSeconds: 30,
    },
    projects: [{ id: "p1", name: "one", key: { env: "KEY" } }],
    exports: [],
    rotations: [],
    prices: [],
    budgets: [],
    discovery: [],
    anomalies: {
      sensitivity: "normal",
    },
    runs: { keepDays: 400 },
    worker: { drainSeconds: 20 },
    monitor: { host: "127.0.0.1", port: 9464 },
    notify: {},
  });
});

test("an export without a window has none, and one with days leaves today out", () => {
  expect(parse(SAMPLE).exports[1]).not.toHaveProperty("window");

  const [nightly] = parseConfig(sampleWith("exports[0].window", { days: 366 }), OPTIONS).exports;
  expect(nightly?.window).toEqual({ days: 366, today: false });
});

test.each([
  ["https://api.example.com/", "https://api.example.com"],
  ["https://gateway.example.com/speech//", "https://gateway.example.com/speech"],
  ["HTTPS://API.Example.com:8443", "https://api.example.com:8443"],
  ["http://localhost:8080", "http://localhost:8080"],
  ["http://127.8.9.10/x", "http://127.8.9.10/x"],
  ["http://[::1]:9000", "http://[::1]:9000"],
])("the address %s is used as %s", (baseUrl, used) => {
  expect(parseConfig(sampleWith("service.baseUrl", baseUrl), OPTIONS).service.baseUrl).toBe(used);
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
  ["exports[1].schedule", "*/30 * * * * *"],
  ["exports[1].filters", [{ name: "german", features: { language: "de" } }]],
  ["exports[1].filters", [{ name: "odd", features: { "aura-2": true, "Numerals.v2": true, "2x_speed": false } }]],
  [
    "exports[1].filters",
    [{ name: "diarized", features: { diarize: "true" }, dimensions: { feature_set: "a", endpoint: "listen" } }],
  ],
  ["exports[0].filters[1].dimensions.deployment", "dedicated"],
  ["exports[1].filters", [{ name: "Ünïcode 日本 name", dimensions: { tags: "a b" } }]],
  ["exports[0].filters[2]", { each: "accessor" }],
  ["budgets[0]", { name: "dollars", metric: "cost", currency: "USD", amount: 1, project: "production" }],
  ["budgets[0]", { name: "key", metric: "requests", amount: 1, project: "production", key: "k" }],
  ["budgets[0]", { name: "model", metric: "cost", currency: "EUR", amount: 1, project: "production", model: "nova-3" }],
  ["notify", { deadMan: { env: "PING_URL" } }],
  ["rotations[0].graceDays", 0],
  ["rotations[0].expiresInDays", undefined],
])("%s may be %j", (place, value) => {
  const text =
    place === "service.dialect"
      ? sampleWith(place, value).replace('"feature_set": "a"', '"model": "a"')
      : sampleWith(place, value);

  expect(messageFor(text)).toBe("");
});

test("the key of a rotation of many projects, and its placeholder, are those of the project", () => {
  const key = { rotation: "fleet", first: { file: "/run/first/{id}" } };
  expect(parseConfig(sampleWith("projects[1].key", key), OPTIONS).projects[1]?.key).toEqual({
    ...{ rotation: "fleet/project_b" },
    first: { file: "/run/first/project_b" },
  });
});

test("every wrong field is named at once, in the order of the file, and then what fields say about each other", () => {
  const placesOf = (value: unknown) => errorsFor(JSON.stringify(value)).map((line) => line.split(" ")[1]);
  const job = { name: "x", schedule: "0 2 * * *", projects: ["tow"], groupings: ["none", "none"] };

  expect(placesOf({ ...MINIMAL, exports: [{ ...job, schedule: "never", filters: [] }], monitor: { prot: 1 } })).toEqual(
    ["exports[0].schedule", "exports[0].filters", "monitor.prot"],
  );
  expect(placesOf({ ...MINIMAL, exports: [job] })).toEqual(["exports[0].projects[0]", "exports[0].groupings[1]"]);
});

test("the message opens with the file and the number of errors, and each error has its line", () => {
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
