// Wrong configurations, each spoiled at one place: the message has one line, names the place and says how to mend it.

import { expect, test } from "vitest";
import { faultsFor, sampleWith } from "./sample-config.ts";

type Case = readonly [changedPlace: string, value: unknown, says: string, faultPlace?: string];

const ALL = { name: "all" };
const LONG = "x".repeat(300);

const SERVICE: readonly Case[] = [
  ["service", undefined, "missing; expected an object"],
  ["service", [], "expected an object { … }; got an empty list"],
  ["service.baseUrl", undefined, "missing; expected a string"],
  ["service.baseUrl", 5, "expected a string; got 5"],
  ["service.baseUrl", "", "expected an https address"],
  ["service.baseUrl", "api.example.com", 'such as "https://api.deepgram.com"; got "api.example.com"'],
  ["service.baseUrl", "ftp://api.example.com", "expected an https address"],
  ["service.baseUrl", "file:///etc/passwd", "expected an https address"],
  ["service.baseUrl", "https://", "expected an https address"],
  ["service.baseUrl", " https://api.example.com", "expected an https address"],
  ["service.baseUrl", "https:\\\\api.example.com", "expected an https address"],
  ["service.baseUrl", "http://api.example.com", 'write "https://api.example.com"'],
  ["service.baseUrl", "http://127.0.0.1.example.com", "http is for this machine only"],
  ["service.baseUrl", "http://10.0.0.1", "http is for this machine only"],
  ["service.baseUrl", "https://user:hunter2@api.example.com", "remove what stands before the @"],
  ["service.baseUrl", "https://@api.example.com", "remove what stands before the @"],
  ["service.baseUrl", "https://api.example.com?", 'without "?" and "#"'],
  ["service.baseUrl", "https://api.example.com#top", 'without "?" and "#"'],
  ["service.baseUrl", "https://api.example.com/v1", 'without "/v1"'],
  ["service.authScheme", "Basic", 'expected one of "Token", "Bearer", "none"; got "Basic"'],
  ["service.requestsPerSecond", 0, "greater than 0 and at most 100; got 0"],
  ["service.requestsPerSecond", 101, "greater than 0 and at most 100; got 101"],
  ["service.requestsPerSecond", "5", 'a number greater than 0 and at most 100; got "5"'],
  ["service.maxConcurrent", 0, "a whole number from 1 to 64; got 0"],
  ["service.maxConcurrent", 65, "a whole number from 1 to 64; got 65"],
  ["service.maxConcurrent", 1.5, "a whole number from 1 to 64; got 1.5"],
  ["service.timeoutSeconds", 601, "a whole number from 1 to 600; got 601"],
  ["service.timeoutSeconds", null, "a whole number from 1 to 600; got null"],
];

const PROJECTS: readonly Case[] = [
  ["projects[0].id", "..", 'a project id: 1 to 128 letters, digits, "-" and "_"; got ".."'],
  ["projects[0].id", "a/b", 'got "a/b"'],
  ["projects[0].id", "%2e%2e", 'got "%2e%2e"'],
  ["projects[0].id", "a\r\nHost: b", 'got "a\\r\\nHost: b"'],
  ["projects[0].id", "", 'got ""'],
  ["projects[0].id", LONG, `got "${"x".repeat(60)}…"`],
  ["projects[1].id", "11111111-2222-3333-4444-555555555555", "expected each project once", "projects[1].id"],
  ["exports[0].name", " nightly", "without spaces at its ends"],
  ["exports[0].name", "a\nb", "without control characters"],
  ["exports[0].name", "a\u0000b", "without control characters"],
  ["exports[0].name", "a\ud800", "without control characters"],
  ["projects[0].key", undefined, 'missing; expected { "env": "NAME" }'],
  ["projects[0].key", {}, "got an object, not shown here"],
  ["projects[0].key", { env: "A", file: "b" }, '{ "env": "NAME" }, { "file": "PATH" } or { "rotation"'],
  ["projects[0].key.env", "$KEY", 'without "$"'],
  ["projects[0].key.env", "", "the name of an environment variable"],
  ["projects[0].key.env", 5, "expected a string; got a number, not shown here"],
  ["projects[1].key.file", "~/key", '"~" is not replaced'],
  ["projects[1].key.file", "", "a string of 1 to 1000 characters"],
  ["projects[2].key.first", undefined, 'missing; expected { "env": "NAME" } or { "file": "PATH" }'],
  ["projects[2].key.first", { rotation: "lab-key", first: { env: "A" } }, '{ "env": "NAME" } or { "file": "PATH" }'],
  ["projects[2].key.rotation", "other", 'the name of a rotation ("lab-key", "production-key")'],
  ["projects[2].key.rotation", "production-key", "this one makes the keys of another project"],
];

const EXPORTS: readonly Case[] = [
  ["exports", {}, "expected a list [ … ]; got an empty object"],
  ["exports[0]", "nightly", 'expected an object { … }; got "nightly"'],
  ["exports[0].name", undefined, "missing; expected a string of 1 to 100 characters"],
  [
    "exports[1].name",
    "nightly",
    'a name that no other export has; got "nightly", which stands at exports[0].name already',
  ],
  ["exports[0].schedule", "15 2 * *", "expected 5 or 6 fields but got 4"],
  ["exports[0].schedule", "15 25 * * *", "its hour is wrong"],
  ["exports[0].schedule", "0 0 31 2 *", "its day is wrong"],
  ["exports[0].schedule", "every night", 'a cron expression (minute hour day month weekday) such as "15 2 * * *"'],
  ["exports[0].schedule", "", "expected a cron expression"],
  ["exports[0].timezone", "", 'a time zone such as "UTC" or "Europe/Vienna"'],
  ["exports[0].timezone", "UTC+1", 'a time zone such as "UTC" or "Europe/Vienna"; got "UTC+1"'],
  ["exports[0].projects", [], "at least one entry"],
  ["exports[0].projects", "production", 'expected a list [ … ]; got "production"'],
  ["exports[0].projects[0]", "nowhere", 'the name of a project ("production", "staging", "lab"); got "nowhere"'],
  ["exports[0].projects[1]", "project_b", 'got its id; did you mean "staging"?'],
  ["exports[0].projects[1]", "production", "expected each project once"],
  ["exports[0].window", { today: true }, "missing; expected a whole number from 1 to 366", "exports[0].window.days"],
  ["exports[0].window", 7, "expected an object { … }; got 7"],
  ["exports[0].window.days", 0, "a whole number from 1 to 366; got 0"],
  ["exports[0].window.days", 367, "a whole number from 1 to 366; got 367"],
  ["exports[0].window.days", 7.5, "a whole number from 1 to 366; got 7.5"],
  ["exports[0].window.today", "yes", 'expected true or false; got "yes"'],
  ["exports[0].groupings", [], "at least one entry"],
  ["exports[0].groupings[2]", "user", '"feature_set", "method", "model", "tags"; got "user"'],
  [
    "exports[0].groupings[2]",
    "none",
    'expected each grouping once; got "none", which stands at exports[0].groupings[0] already',
  ],
  ["exports[0].groupings[2]", null, "; got null"],
  ["exports[0].jitterSeconds", 3601, "expected a whole number from 0 to 3600; got 3601"],
  ["exports[0].overlap", "wait", 'expected one of "skip", "queue"; got "wait"'],
  ["rotations[0].jitterSeconds", -1, "expected a whole number from 0 to 3600; got -1"],
  ["worker.drainSeconds", 0, "expected a whole number from 1 to 600; got 0"],
  ["exports[0].checkFeatures", "ignore", 'expected one of "error", "warn", "off"; got "ignore"'],
  ["exports[0].emptyGuard", false, 'expected one of "confirm", "off"; got false'],
];

const FILTERS: readonly Case[] = [
  ["exports[0].filters", [], "at least one entry"],
  ["exports[0].filters[1].name", undefined, "missing; expected a string of 1 to 100 characters"],
  ["exports[0].filters[1].features.Diarize", true, "lower case letters", "exports[0].filters[1].features.Diarize"],
  [
    "exports[0].filters[1].features.no-dash",
    true,
    "expected the name of a feature",
    'exports[0].filters[1].features["no-dash"]',
  ],
  ["exports[0].filters[1].features.diarize", 1, "expected true, false or a string; got 1"],
  ["exports[0].filters[1].features.diarize", "", "a string of 1 to 200 characters"],
  ["exports[0].filters[1].features.model", "nova", 'belongs in "dimensions" of this filter, as "model"'],
  ["exports[0].filters[1].features.models", "nova", 'belongs in "dimensions" of this filter, as "model"'],
  ["exports[0].filters[1].features.tag", "a", 'belongs in "dimensions" of this filter, as "tags"'],
  ["exports[0].filters[1].features.endpoint", "listen", 'as "endpoint"'],
  ["exports[0].filters[1].features.feature_set", "x", 'as "feature_set"'],
  ["exports[0].filters[1].features.grouping", "model", 'belongs in "groupings" of the export'],
  ["exports[0].filters[1].features.start", "2026-01-01", 'the days belong in "window" of the export'],
  ["exports[0].filters[1].features.end", "2026-01-01", 'the days belong in "window" of the export'],
  ["exports[0].filters[1].dimensions.endpoint", "transcribe", 'expected one of "listen", "speak", "agent", "read"'],
  ["exports[0].filters[1].dimensions.deployment", "cloud", 'expected one of "self-hosted", "hosted", "beta"'],
  ["exports[0].filters[1].dimensions.method", "batch", 'expected one of "sync", "async", "streaming"'],
  ["exports[0].filters[1].dimensions.tags", ["a"], "expected a string of 1 to 256 characters"],
  ["exports[0].filters[1].dimensions.diarize", true, 'unknown field; expected one of "accessor"'],
  ["service.dialect", "2026", "no such filter, only the grouping", "exports[0].filters[1].dimensions.feature_set"],
  ["exports[0].filters[0].dimensions", { model: "x" }, '"all" is all usage', "exports[0].filters[0].name"],
  ["exports[0].filters[1]", ALL, "expected each filter of an export once", "exports[0].filters[1].name"],
  ["exports[0].filters[1]", { name: "every" }, "has no conditions either", "exports[0].filters[1].name"],
  ["exports[0].filters[1].name", "all", '"all" is all usage, without conditions'],
  ["exports[1].filters", [{ name: "every" }], 'is called "all"', "exports[1].filters[0].name"],
  [
    "exports[1].filters",
    [{ name: "diarized", features: { diarize: false } }],
    '"diarized" has other conditions at exports[0].filters[1]',
    "exports[1].filters[0].name",
  ],
  [
    "exports[1].filters",
    [{ name: "second", features: { diarize: "true" }, dimensions: { feature_set: "a", endpoint: "listen" } }],
    'exports[0].filters[1] has the same conditions and is called "diarized"',
    "exports[1].filters[0].name",
  ],
];

const ROTATIONS: readonly Case[] = [
  ["rotations[1].name", "lab-key", "a name that no other rotation has"],
  ["rotations[1].project", "elsewhere", 'the name of a project ("production", "staging", "lab"); got "elsewhere"'],
  ["rotations[0].schedule", "0 4 * * xyz", "its weekday is wrong"],
  ["rotations[0].timezone", 1, "expected a string; got 1"],
  ["rotations[0].comment", "", "a string of 1 to 200 characters"],
  ["rotations[0].commentTemplate", "exporter {id}", 'expected a template with "{comment}"'],
  ["rotations[0].commentTemplate", "{comment} {when}", "{when} is none of {comment} and {id}"],
  ["rotations[0].scopes", [], "at least one entry"],
  ["rotations[0].scopes", undefined, "missing; expected a list"],
  ["rotations[0].scopes[1]", "usage read", 'a scope or role such as "usage:read" or "member"; got "usage read"'],
  ["rotations[0].scopes[1]", "member", "expected each scope once"],
  ["rotations[0].tags", ["a", "a"], "expected each tag once", "rotations[0].tags[1]"],
  ["rotations[0].tags[0]", "x".repeat(129), "a string of 1 to 128 characters"],
  ["rotations[0].maxAgeDays", 0, "a whole number from 1 to 3650; got 0"],
  ["rotations[0].graceDays", -1, "a whole number from 0 to 365; got -1"],
  ["rotations[0].expiresInDays", 25, "expected more than 25 (maxAgeDays 20 and graceDays 5)"],
  ["rotations[1].expiresInDays", 37, "expected more than 37 (maxAgeDays 30 and graceDays 7)"],
  ["rotations[0].deliver[0]", "secrets/lab.key", '{ "file": "PATH" } or { "command": ["PROGRAM", "ARGUMENT"] }'],
  ["rotations[0].deliver[1].command", [], "at least one entry"],
  ["rotations[0].deliver[1].command", "vault-put lab", 'expected a list [ … ]; got "vault-put lab"'],
  ["rotations[0].deliver[1].timeoutSeconds", 0, "a whole number from 1 to 600; got 0"],
  [
    "rotations[1].deliver",
    [{ file: "./secrets/../secrets/lab.key" }],
    "stands at rotations[0].deliver[0].file already",
    "rotations[1].deliver[0].file",
  ],
  ["rotations[0].retire", "remove", 'expected one of "keep", "delete"; got "remove"'],
  ["notify", "https://hooks.example.com/x", "expected an object { … }; got a string, not shown here"],
  ["notify.webhook", "https://hooks.example.com/x", "an address itself, which is a secret, never stands in this file"],
  ["notify.webhook", { url: "https://hooks.example.com/x" }, 'expected { "env": "NAME" } or { "file": "PATH" }'],
  ["notify.webhook.env", "https://hooks.example.com/x", "the name of an environment variable"],
  ["notify.deadMan.file", "https://ping.example.com/x", "this looks like the address itself"],
  ["notify.webhook", { rotation: "lab-key", first: { env: "A" } }, '{ "env": "NAME" } or { "file": "PATH" }'],
  ["notify.email", "me@example.com", 'unknown field; expected one of "webhook", "deadMan"'],
  ["monitor", null, "expected an object { … }; got null"],
  ["monitor.host", "http://localhost", 'a host name or address such as "127.0.0.1"'],
  ["monitor.port", 65_536, "a whole number from 0 to 65535; got 65536"],
  ["monitor.port", "9464", 'a whole number from 0 to 65535; got "9464"'],
];

const CASES = [...SERVICE, ...PROJECTS, ...EXPORTS, ...FILTERS, ...ROTATIONS].map(
  ([place, value, says, faultPlace = place]) => [place, value, says, faultPlace] as const,
);

test.each(CASES)("%s can't be %j: %s", (place, value, says, faultPlace) => {
  const faults = faultsFor(sampleWith(place, value));

  expect(faults).toEqual([expect.stringContaining(says)]);
  expect(faults[0]).toMatch(/^- \S+ \(line \d+\): /);
  expect(faults[0]?.split(" ")[1]).toBe(faultPlace);
});
