// The sample configuration with one mistake: the message has one line, names the place and says how to fix it.

import { expect, test } from "vitest";
import { errorsFor, sampleWith } from "./sample-config.ts";

/** The changed place, its new value (undefined leaves the field out), words of the message, and the place that the message names. */
type Mistake = readonly [changed: string, value: unknown, says: string, named?: string];

// Places in the sample.
const JOB = "exports[0]";
const FILTER = "exports[0].filters[1]";
const EACH = "exports[0].filters[2]";
const DIMENSION = "exports[1].filters[0].dimensions";
const KEY = "projects[1].key";
const AURA = "exports[2].filters[1].dimensions";
const FILTERS = "exports[1].filters";
const NAMED = "exports[1].filters[0].name";
const DELIVER = "rotations[1].deliver";
const TIER = "prices[0].tiers[1]";

const OF_LAB = [{ file: "./secrets/../secrets/lab.key" }];
const OF_FLEET = [{ file: "keys/project_b.key" }];
const OF_CREATOR = "is the file of the key that a rotation creates keys with";

const ANY_HOURS = { metric: "hours", model: "*", currency: "EUR", price: 1, from: "2026-05-01" };
const UNLIKE_DIARIZED = { name: "diarized", features: { diarize: false } };
const LIKE_DIARIZED = { features: { diarize: "true" }, dimensions: { feature_set: "a", endpoint: "listen" } };
const BUDGET = { name: "limit", metric: "hours", amount: 100, project: "production" };
const COST_OF_ALL = { ...BUDGET, project: undefined, metric: "cost", currency: "USD" };

const withDimension = (name: string, value: string) => [{ name: "x", dimensions: { [name]: value } }];

const FIELDS: readonly Mistake[] = [
  ["service", undefined, "missing; expected an object"],
  ["service.baseUrl", undefined, "missing; expected a string"],
  ["service.baseUrl", "api.example.com", 'or "#"; got "api.example.com"'],
  ["service.baseUrl", "http://api.example.com", 'write "https://api.example.com"'],
  ["service.baseUrl", "http://127.0.0.1.example.com", "http is for this machine only"],
  ["service.baseUrl", "https://user:hunter2@api.example.com", "without a user name, password"],
  ["service.baseUrl", "https://api.example.com?", 'without a user name, password, "?" or "#"'],
  ["service.baseUrl", "https://api.example.com/v1", 'without "/v1"'],
  ["service.authScheme", "Basic", 'expected one of "Token", "Bearer", "none"; got "Basic"'],
  ["service.authScheme", { toString: "Basic" }, 'got an object with "toString"'],
  ["service.requestsPerSecond", 0, "greater than 0 and at most 10000; got 0"],
  ["service.maxConcurrent", 1.5, "a whole number from 1 to 64; got 1.5"],
  ["projects[0].id", "..", 'a project id: 1 to 128 letters, digits, "-" and "_"; got ".."'],
  ["projects[0].id", "%2e%2e", 'got "%2e%2e"'],
  ["projects[0].id", "x".repeat(300), `got "${"x".repeat(60)}…"`],
  ["projects[0].key", undefined, 'missing; expected { "env": "NAME" }'],
  ["projects[0].key", {}, "got an object, not shown here"],
  ["projects[0].key", { env: "A", file: "b" }, '{ "env": "NAME" }, { "file": "PATH" }, { "command": ["PROGRAM"'],
  ["projects[0].key", { fil: "x" }, 'did you mean "file"?'],
  ["projects[0].key.env", "$KEY", 'without "$"'],
  ["projects[0].key.env", 5, "expected a string; got a number, not shown here"],
  ["projects[1].key.file", "", "a string of 1 to 1000 characters"],
  ["projects[2].key.first", undefined, 'missing; expected { "env": "NAME" }, { "file": "PATH" } or { "command"'],
  ["exports", {}, "expected a list [ … ]; got an empty object"],
  [`${JOB}.name`, undefined, "missing; expected a string of 1 to 100 characters"],
  [`${JOB}.name`, " nightly", "without spaces at its ends"],
  [`${JOB}.name`, "a\nb", "without control characters"],
  [`${JOB}.schedule`, "15 2 * *", "exactly five, six, or seven space separated parts"],
  [`${JOB}.schedule`, "every night", 'a cron expression (minute hour day month weekday) such as "15 2 * * *"'],
  [`${JOB}.schedule`, "0 0 31 2 *", "an impossible day of month"],
  // Neither a 31st nor the last day of a month is ever a first Monday.
  [`${JOB}.schedule`, "0 0 31 * 1#1", "it never occurs"],
  [`${JOB}.schedule`, "0 * L * 1#1", "it never occurs"],
  [`${JOB}.schedule`, "2026-12-01T00:00:00", "a cron expression"],
  [`${JOB}.timezone`, "Vienna", 'did you mean "Europe/Vienna"?'],
  [`${JOB}.projects`, "production", 'expected a list [ … ]; got "production"'],
  [`${JOB}.window`, { today: true }, "missing; expected a whole number from 1 to 366", `${JOB}.window.days`],
  [`${JOB}.groupings`, [], "at least one entry"],
  [`${JOB}.groupings[2]`, "user", '"tags", "line_item"; got "user"'],
  [`${JOB}.groupings[2]`, "modle", 'did you mean "model"?'],
  [`${JOB}.checkFeatures`, "warning", 'did you mean "warn"?'],
  [`${FILTER}.features.no:colon`, true, "expected the name of a feature", `${FILTER}.features["no:colon"]`],
  [`${FILTER}.features.Model`, "nova", 'belongs in "dimensions" of this filter, as "model"'],
  [`${FILTER}.features.tag`, "a", 'belongs in "dimensions" of this filter, as "tags"'],
  [`${FILTER}.features.grouping`, "model", 'it belongs in "groupings" of the export'],
  [`${FILTER}.features.start`, "2026-01-01", 'days belong in "window" of the export'],
  [`${FILTER}.features.diarize`, 1, "expected true, false or a string; got 1"],
  [EACH, {}, 'expected { "name": "NAME", "features": { … }, "dimensions": { … } } or { "each"'],
  [`${EACH}.each`, "model", '"tags"; got "model"'],
  ["rotations[0].scopes[1]", "usage read", 'a scope or role such as "usage:read" or "member"; got "usage read"'],
  ["rotations[0].deliver[0]", "secrets/lab.key", '{ "file": "PATH" } or { "command": ["PROGRAM", "ARGUMENT"] }'],
  ["rotations[0].deliver[1]", { comand: ["x"] }, 'got an object with "comand"; did you mean "command"?'],
  ["notify", "https://hooks.example.com/x", "expected an object { … }; got a string, not shown here"],
  ["notify.webhook", "https://hooks.example.com/x", "(never write the address itself into this file"],
  ["notify.webhook.env", "https://hooks.example.com/x", "the name of an environment variable"],
  ["notify.deadMan.file", "https://ping.example.com/x", "this looks like the address itself"],
  ["notify.webhook", { rotation: "lab-key", first: { env: "A" } }, '{ "env": "NAME" } or { "file": "PATH" }'],
  ["notify", { report: "0 8 * * 1" }, 'expected "webhook" beside it', "notify.report"],
  ["notify.report", 5, "got 5"],
  ["monitor.host", "http://localhost", 'a host name or address such as "127.0.0.1"'],
  ["monitor", { host: "0.0.0.0" }, 'other machines reach "0.0.0.0": set "access" beside it', "monitor.host"],
  ["monitor.port", 65_536, "a whole number from 0 to 65535; got 65536"],
  ["monitor.publicUrl", "usage.example.com", 'such as "https://usage.example.com"'],
  ["monitor.access", {}, 'expected { "bearer": { "env": "NAME" } } or { "basic": { "username"'],
  ["monitor.access", { bearer: { env: "A" }, basic: {} }, 'unknown field; expected "bearer"', "monitor.access.basic"],
  ["monitor.access", { bearer: 5 }, "got a number, not shown here", "monitor.access.bearer"],
  ["monitor.access.basic.username", "a:b", 'a name of 1 to 100 letters, digits, ".", "_", "@", "+" and "-"'],
  ["monitor.access.basic.password", "", "(never write the password itself into this file"],
  ["monitor.zzz", 1, 'unknown field; expected one of "host", "port", "publicUrl", "access"'],
];

const KEYS: readonly Mistake[] = [
  [KEY, { file: "keys/{Id}" }, "no other placeholder; got {Id}", `${KEY}.file`],
  [KEY, { command: ["read", "{name}"] }, "no other placeholder; got {name}", `${KEY}.command[1]`],
  [KEY, { command: ["vault-{id}"] }, "expected a program without {id}", `${KEY}.command`],
  [KEY, { command: [] }, "expected at least one entry", `${KEY}.command`],
  [KEY, { command: ["v"], variables: ["$A"] }, 'without "$"', `${KEY}.variables[0]`],
  [KEY, { command: ["echo", "a1b2c3d4e5f6a1b2c3d4e5f6"] }, "key itself", `${KEY}.command`],
];

const MONEY: readonly Mistake[] = [
  ["prices[0].metric", "hour", 'did you mean "hours"?'],
  ["prices[0].price", -1, 'expected a decimal number of 0 or more, such as 0.0043 or "0.0043"; got -1'],
  ["prices[0].price", "0,01", 'got "0,01"'],
  ["prices[0].from", "2026-02-30", 'expected a day that exists, such as "2026-01-31"; got "2026-02-30"'],
  ["prices[0].until", "2025-12-31", 'expected a day not before "from", which is 2026-01-01; got "2025-12-31"'],
  ["prices[0].currency", "usd", 'such as "USD" or "EUR"; got "usd"; did you mean "USD"?'],
  ["prices[0].model", "nova*3", 'expected a model, the beginning of models such as "nova-*"'],
  ["prices[0].model", '["nova-2","nova-3"]', 'expected a model, the beginning of models such as "nova-*"'],
  ["prices[0].per", 15, 'expected 1, 10, 100 and so on, or one of "hour", "minute", "second"; got 15'],
  ["prices[1].per", "minute", "expected a power of ten, as requests is not measured in time"],
  [TIER, { above: "10000.0", price: 1 }, "more than 10000, each tier above", `${TIER}.above`],
  ["prices[0].tiers[0].price", undefined, "missing; expected a decimal number"],
  ["prices[0].price", null, 'expected no tiers where "price" is null', "prices[0].tiers"],
  ["prices[1]", ANY_HOURS, 'prices the same usage as prices[0]: usage has one price; end one of them with "until"'],
  ["budgets[0].amount", 0, "expected more than 0; got 0"],
  ["budgets[0].thresholds[1]", 12.5, "expected more than 12.5, each threshold above the one before; got 12.5"],
  ["budgets[0]", { ...BUDGET, tag: "a", model: "b" }, 'this budget has "tag", too', "budgets[0].model"],
  ["budgets[0].metric", "cost", 'missing; expected the currency of the cost, such as "USD"', "budgets[0].currency"],
  ["budgets[0].currency", "USD", "expected no currency: hours has none"],
  ["budgets[0].from", "2026-11-15", "expected the first day of a month, as the budget is by month"],
  ["budgets[0].project", "produktion", 'did you mean "production"?'],
  ["budgets[1]", BUDGET, "a name that no other budget has", "budgets[1].name"],
  [
    "budgets[0].tag",
    "prod",
    'no export reads the usage by the grouping "tags" of "production" without conditions: add one, or this budget is never used up',
    "budgets[0]",
  ],
  ["budgets[0]", COST_OF_ALL, 'the billing by the grouping "none" or the usage by the grouping "model" of "lab"'],
  [
    "budgets[0]",
    { ...BUDGET, project: "lab", metric: "cost", currency: "USD", model: "nova-3" },
    'no export reads the usage by the grouping "model" of "lab" without',
  ],
  ["budgets[0]", { ...BUDGET, metric: "cost", currency: "EUR", key: "k" }, "the service bills in USD"],
];

const BILLING: readonly Mistake[] = [
  ["exports[2].groupings[0]", "model", '"model" is a grouping that only usage has'],
  ["exports[2].groupings[2]", ["tags", "model"], 'expected one of "accessor"', "exports[2].groupings[2][1]"],
  ["exports[2].groupings[2]", ["tags", "tags"], "expected each dimension once"],
  ["exports[2].groupings[1]", ["line_item", "tags"], 'got "line_item,tags"', "exports[2].groupings[2]"],
  ["exports[2].window", undefined, 'missing; expected one beside "source": "billing"'],
  ["exports[2].filters[1].features", { diarize: true }, "is a condition that only usage has"],
  [AURA, { method: "sync" }, "that only usage has", `${AURA}.method`],
  ["exports[2].filters[1].dimensions.deployment", "dedicate", 'did you mean "dedicated"?'],
  ["exports[2].filters[1]", { each: "accessor" }, 'expected no "each" beside "source"', "exports[2].filters[1].each"],
  [
    "exports[1].filters",
    withDimension("line_item", "x"),
    'is a dimension that only billing has: give it an export with "source": "billing"',
    `${DIMENSION}.line_item`,
  ],
];

const CREATOR = "rotations[2].createWith";
const FLEET: readonly Mistake[] = [
  ["rotations[2].project", "lab", 'expected either "project" or "projects"', "rotations[2].projects"],
  ["rotations[2].projects", undefined, 'expected "project" or "projects"', "rotations[2].project"],
  ["rotations[2].projects[0]", "stagin", 'did you mean "staging"?'],
  ["rotations[2].projects[0]", "x-*", "expected a pattern that matches a project"],
  ["rotations[2].deliver[0].file", "key", 'expected "{id}", the id of the project, in it'],
  ["rotations[2].deliver[1].command", ["put"], 'expected "{id}", the id'],
  ["rotations[2].name", "fleet/p1", 'expected a name without "/"'],
  [CREATOR, { rotation: "flet", first: { env: "X" } }, 'did you mean "fleet"?', `${CREATOR}.rotation`],
  [CREATOR, { rotation: "production-key", first: { env: "X" } }, "keys of another project", `${CREATOR}.rotation`],
  ["rotations[2].deliver[0].file", "creators/{id}", `/srv/usage/creators/{id} ${OF_CREATOR}`],
  [DELIVER, [{ file: "creators/project_b" }], `/srv/usage/creators/project_b ${OF_CREATOR}`, `${DELIVER}[0].file`],
  [DELIVER, OF_FLEET, `/srv/usage/keys/project_b.key is already at ${DELIVER}[0].file`, "rotations[2].deliver[0].file"],
];

const ACROSS_FIELDS: readonly Mistake[] = [
  ["projects[1].id", "11111111-2222-3333-4444-555555555555", "expected each project once"],
  ["projects[2].key.rotation", "other", 'the name of a rotation ("lab-key", "production-key", "fleet")'],
  ["projects[2].key.rotation", "lab-kye", 'got a string, not shown here; did you mean "lab-key"?'],
  ["projects[2].key.rotation", "production-key", "this one makes the keys of another project"],
  ["exports[1].name", "nightly", 'a name that no other job has; got "nightly", which is already at exports[0].name'],
  [`${JOB}.projects[0]`, "nowhere", 'the name of a project ("production", "staging", "lab"); got "nowhere"'],
  [`${JOB}.projects[0]`, "Production", 'did you mean "production"?'],
  [`${JOB}.projects[1]`, "production", "expected each project once"],
  [`${JOB}.groupings[2]`, "none", 'each grouping once; got "none", which is already at exports[0].groupings[0]'],
  [
    "exports[1].filters",
    withDimension("endpoint", "transcribe"),
    'expected one of "listen", "speak", "agent", "read"; got "transcribe"; "checkFeatures": "warn" allows',
    `${DIMENSION}.endpoint`,
  ],
  ["exports[1].filters", withDimension("method", "stream"), 'did you mean "streaming"?', `${DIMENSION}.method`],
  [`${EACH}.each`, "tags", 'groups "production", "staging" by "tags" without conditions'],
  [`${JOB}.window`, undefined, 'expected a "window" in this export', `${EACH}.each`],
  [FILTER, { each: "accessor" }, `got "accessor=*", which is already at ${FILTER}.each`, `${EACH}.each`],
  [`${JOB}.filters[0]`, { name: "x", features: { diarize: true } }, "without conditions", `${EACH}.each`],
  [`${FILTER}.name`, "accessor=a", 'names that begin with "accessor=" are made by "each"'],
  ["service.dialect", "2026", "no such filter, only the grouping", `${FILTER}.dimensions.feature_set`],
  [`${JOB}.filters[0].dimensions`, { model: "x" }, '"all" is all usage', `${JOB}.filters[0].name`],
  [FILTER, { name: "all" }, "expected each filter of an export once", `${FILTER}.name`],
  [FILTER, { name: "every" }, 'same conditions as exports[0].filters[0], which is called "all"', `${FILTER}.name`],
  [FILTERS, [{ name: "every" }], 'which is called "all"', NAMED],
  [FILTERS, [UNLIKE_DIARIZED], `has other conditions than the filter of this name at ${FILTER}`, NAMED],
  [
    FILTERS,
    [{ name: "2", ...LIKE_DIARIZED }],
    `has the same conditions as ${FILTER}, which is called "diarized"`,
    NAMED,
  ],
  ["rotations[1].name", "lab-key", "a name that no other job has"],
  ["rotations[1].project", "elsewhere", 'the name of a project ("production", "staging", "lab"); got "elsewhere"'],
  ["rotations[0].expiresInDays", 25, "expected more than 25 (maxAgeDays 20 and graceDays 5)"],
  [
    "rotations[0].scopes",
    ["usage:read"],
    "expected keys:write, or a role with it, because each key creates the next one",
  ],
  [DELIVER, OF_LAB, "is already at rotations[0].deliver[0].file", `${DELIVER}[0].file`],
];

const unknownField = (meant: string) => `unknown field; did you mean "${meant}"?`;

const MISSPELT: readonly Mistake[] = [
  ["export", 1, unknownField("exports")],
  ["service.url", 1, unknownField("baseUrl")],
  [`${JOB}.groupigns`, 1, unknownField("groupings")],
  [`${FILTER}.feature`, 1, unknownField("features")],
  ["rotations[0].deliver[1].timeout", 1, unknownField("timeoutSeconds")],
  ["monitor.access.basic.pasword", 1, unknownField("password")],
];

const MISTAKES = [FIELDS, KEYS, MONEY, BILLING, FLEET, ACROSS_FIELDS, MISSPELT]
  .flat()
  .map(([changed, value, says, named = changed]) => [changed, value, says, named] as const);

test.each(MISTAKES)("%s can't be %j: %s", (changed, value, says, named) => {
  const errors = errorsFor(sampleWith(changed, value));
  expect(errors).toEqual([expect.stringContaining(says)]);
  expect(errors[0]).toMatch(/^- \S+ \(line \d+\): /);
  expect(errors[0]?.split(" ")[1]).toBe(named);
});
