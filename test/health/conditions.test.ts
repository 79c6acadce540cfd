// Which conditions follow from the facts about jobs, slices, keys, budgets and lists.

import { expect, test } from "vitest";
import type { OpenAnomaly } from "../../src/db/anomalies.ts";
import type { FailureCause } from "../../src/db/usage/failures.ts";
import type { HealthFacts } from "../../src/facts/conditions.ts";
import { isWell } from "../../src/facts/health.ts";
import { DAY_SECONDS } from "../../src/usage/days.ts";
import { FAILED_RUN, healthState, makeBudget, makeJob, makeRotation, makeWorker, NOW } from "./sample-health-state.ts";

type Part = Partial<HealthFacts>;

const conditionsOf = (part: Part) => healthState(part).conditions;

const SLICES = { complete: 60, suspect: 0, failed: 0, missing: 0 };
// The spread of a literal only keeps several fields on one line.
const projectLacking = (project: string, lacking: Partial<typeof SLICES>) => ({
  ...{ project, projectId: project, source: "usage" as const, series: 5, freshThrough: null },
  ...SLICES,
  ...lacking,
});
const SILENT = makeWorker({ state: "silent", recent: false });
/** `waiting` is how many projects are missing from a list that is in doubt. */
const LIST = {
  ...{ keyName: "env ACCOUNT_KEY", readAt: NOW, projects: 10, vanished: 0 },
  ...{ error: null, failingSince: null, waiting: 0, waitingSince: null },
};

test.each<[string, Part]>([
  ["a paused job", { jobs: [makeJob({ paused: { at: NOW, why: "moving", by: "me" } })] }],
  ["no worker, and no job that needs one", { jobs: [makeJob({ needsWorker: false })], workers: [] }],
  ["a worker that stopped a moment ago", { workers: [makeWorker({ state: "stopped" })] }],
  ["a failed run that failed slices explain", { jobs: [makeJob({ failedRun: { ...FAILED_RUN, isExplained: true } })] }],
  ["a silent worker's refusal", { workers: [{ ...SILENT, refusal: { reason: "no", at: NOW } }, makeWorker()] }],
  ["a list that was read", { lists: [LIST] }],
  ["a list that was read again", { lists: [{ ...LIST, failingSince: NOW, waitingSince: NOW }] }],
  ["a list that fails and lacks projects since an unknown time", { lists: [{ ...LIST, error: "no", waiting: 6 }] }],
  ["a key two days over its maximum age", { rotations: [makeRotation({ ageDays: 32 })] }],
  ["no key yet", { rotations: [makeRotation({ ageDays: null })] }],
  ["a rotation no longer configured", { rotations: [makeRotation({ configured: undefined, keys: { orphan: 1 } })] }],
  ["a budget far from its thresholds", { budgets: [makeBudget({ reached: [], forecastPercent: "100" })] }],
])("%s: no condition", (_, part) => {
  expect(conditionsOf(part)).toEqual([]);
});

const [MONDAY, TUESDAY] = [new Date("2026-03-09T05:00:00Z"), new Date("2026-03-10T05:00:00Z")];
const FALLBACKS = [TUESDAY, MONDAY, NOW].map((at, i) =>
  makeRotation({ project: `p${i}`, fallback: "401", fallbackAt: at }),
);

test.each<[string, Part]>([
  ["no worker", { workers: [{ ...SILENT, lastSeenAt: MONDAY }] }],
  ["an overdue job", { jobs: [makeJob({ overdueSince: MONDAY })] }],
  ["a refused configuration", { workers: [makeWorker({ refusal: { reason: "no", at: MONDAY } })] }],
  ["a list that fails", { lists: [{ ...LIST, error: "no", failingSince: MONDAY }] }],
  ["a list that lacks projects", { lists: [{ ...LIST, waiting: 6, waitingSince: MONDAY }] }],
  ["a failed run", { jobs: [makeJob({ failedRun: { ...FAILED_RUN, startedAt: MONDAY } })] }],
  ["refused keys of several projects, the first of them on Monday", { rotations: FALLBACKS }],
])("%s since Monday: the condition has the time of its beginning", (_, part) => {
  expect(conditionsOf(part).map(({ since }) => since)).toEqual([MONDAY]);
});

test("a condition counts projects of the rotation that have no key yet", () => {
  const jobs = [makeJob({ job: "fleet" }), makeJob({ kind: "rotation", job: "keys", projects: 7 })];
  const fleet = makeJob({ kind: "rotation", job: "fleet", projects: 300 });
  const rotations = ["a", "b"].map((project) => makeRotation({ rotation: "fleet", project, keys: { orphan: 1 } }));
  expect(conditionsOf({ jobs: [...jobs, fleet], rotations })[0]?.text).toMatch(/; in 2 of 300 projects \(a, b\)$/);
  // Without the job, only the projects in `rotations` are counted.
  expect(conditionsOf({ jobs, rotations })[0]?.text).toMatch(/; in 2 of 2 projects \(a, b\)$/);
});

test("a rotation of many projects shows the worst of its projects", () => {
  const ages = [3, 40, null].map((days) => ({ ageDays: days, ageSeconds: days === null ? null : days * DAY_SECONDS }));
  const failures = [1, 4, 2].map((failedAttempts) => ({ failedAttempts, lastError: `error ${failedAttempts}` }));
  const refusals = [null, MONDAY, TUESDAY].map((at) => ({ fallbackAt: at, fallback: at && `${at}` }));
  const rotations = [0, 1, 2].map((i) =>
    makeRotation({
      ...{ rotation: "fleet", project: `p${i}`, keys: { orphan: i } },
      ...{ ...ages[i], ...failures[i], ...refusals[i] },
    }),
  );
  expect(healthState({ rotations }).rotations).toMatchObject([
    {
      ...{ rotation: "fleet", projects: 3, project: null, apiKeyId: null, ageDays: 40, ageSeconds: 40 * DAY_SECONDS },
      ...{ failedAttempts: 4, lastError: "error 4", fallback: `${TUESDAY}`, fallbackAt: TUESDAY },
      keys: { pending: 0, active: 3, draining: 0, orphan: 3, dueForRemoval: 0 },
    },
  ]);
});

const FAILED_ROTATION = makeJob({ kind: "rotation", job: "exporter", failedRun: FAILED_RUN });
const FAILED_EXPORT = makeJob({ job: "exporter", failedRun: FAILED_RUN });
const failing = (failedAttempts: number, lastError = "no") => [makeRotation({ failedAttempts, lastError })];
const OLD_KEY = [makeRotation({ ageDays: 33 })];

test.each<[string, readonly string[], Part]>([
  ["five attempts explain a failed rotation", ["key attention"], { jobs: [FAILED_ROTATION], rotations: failing(5) }],
  ["an old key explains no failed rotation", ["rotation", "key age"], { jobs: [FAILED_ROTATION], rotations: OLD_KEY }],
  [
    "attempts of a rotation do not explain a failed export of the same name",
    ["export", "key attempts"],
    { jobs: [FAILED_EXPORT], rotations: failing(1) },
  ],
  ["one job needs the missing worker", ["worker"], { jobs: [makeJob({ needsWorker: false }), makeJob()], workers: [] }],
])("%s: the conditions are %j", (_, names, part) => {
  expect(conditionsOf(part).map(({ name }) => name)).toEqual(names);
});

test.each<[string, isHeldBack: boolean, Part]>([
  ["an export may read them", true, { jobs: [makeJob(), makeJob({ mayReadMissing: true })] }],
  ["a rotation runs", false, { jobs: [makeJob({ kind: "rotation", mayReadMissing: true })] }],
])("while %s, missing days have isQuiet %s", (_, isHeldBack, part) => {
  const projects = [projectLacking("a", { missing: 1 }), projectLacking("b", {})];
  const shown = conditionsOf({ ...part, projects, slices: { ...SLICES, missing: 1, failed: 1 } });
  expect(shown.map(({ isQuiet }) => isQuiet)).toEqual([isHeldBack, false]);
  expect(shown[0]?.text).toMatch(/^usage of 1 project was due/);
});

test("a long reason of a refused configuration is cut to 400 characters", () => {
  const reason = (length: number) =>
    conditionsOf({ workers: [makeWorker({ refusal: { reason: "x".repeat(length), at: NOW } })] })[0]?.text;
  expect([reason(400), reason(401)]).toEqual([expect.stringMatching(/; x{400}$/), expect.stringMatching(/; x{399}…$/)]);
});

test.each([
  ["80", "warning"],
  ["100", "critical"],
  ["120", "critical"],
] as const)("a budget that has reached %s%% has the severity %s", (threshold, severity) => {
  expect(conditionsOf({ budgets: [makeBudget({ reached: ["50", threshold] })] })).toMatchObject([{ severity }]);
});

const matching = (text: string | RegExp) => (typeof text === "string" ? text : expect.stringMatching(text));

const MANUAL_RUN = "in its run of 2026-03-10 06:00 UTC (manual)";
const INTERRUPTED = { failedRun: { ...FAILED_RUN, status: "interrupted", error: null } } as const;

/** NOW is 2026-03-10 06:00 UTC. */
const CASES: readonly [sectionAndName: string, text: string | RegExp, part: Part][] = [
  [
    "gaps: missing",
    "usage of 2 projects was due and never read: usage-export status says which",
    { slices: { ...SLICES, missing: 3 }, projects: ["a", "b"].map((one) => projectLacking(one, { missing: 1 })) },
  ],
  ["gaps: failed other", "2 readings failed for other reasons", { slices: { ...SLICES, failed: 2 } }],
  [
    "gaps: suspect",
    "usage of 1 project is in doubt: the newest answer was not believed, and earlier numbers stay",
    { slices: { ...SLICES, suspect: 3 }, projects: [projectLacking("a", { suspect: 3 })] },
  ],
  [
    "jobs: overdue export nightly",
    "export nightly has been overdue since 2026-03-10 06:00 UTC: no worker has taken it up",
    { jobs: [makeJob({ overdueSince: NOW })] },
  ],
  [
    "jobs: worker",
    "no worker runs, so nothing is done on schedule: the last one, node-1 pid 41, was seen 2026-03-10 06:00 UTC; run: usage-export start",
    { jobs: [makeJob({ overdueSince: NOW })], workers: [SILENT] },
  ],
  [
    "jobs: config",
    "configuration refused since 2026-03-10 06:00 UTC: the worker node-1 pid 41 keeps the previous one; line 3: no",
    { workers: [makeWorker({ refusal: { reason: "line 3:\n  no", at: NOW } })] },
  ],
  [
    'jobs: projects "env ACCOUNT_KEY"',
    /^the projects of env ACCOUNT_KEY could not be listed since .*: 10 projects of the last list are exported; .*; HTTP 500$/,
    { lists: [{ ...LIST, error: "HTTP 500", failingSince: NOW }] },
  ],
  [
    'jobs: projects "env ACCOUNT_KEY"',
    /^6 of 10 projects of env ACCOUNT_KEY have been missing from the list since .*check --confirm-projects$/,
    { lists: [{ ...LIST, waiting: 6, waitingSince: NOW }] },
  ],
  ["runs: export nightly", `export nightly failed ${MANUAL_RUN}: no`, { jobs: [makeJob({ failedRun: FAILED_RUN })] }],
  ["runs: export nightly", `export nightly was interrupted ${MANUAL_RUN}`, { jobs: [makeJob(INTERRUPTED)] }],
  [
    "runs: rotation exporter",
    /^rotation exporter failed in its run of /,
    { jobs: [FAILED_ROTATION], rotations: [makeRotation()] },
  ],
  // The failed attempts say why the run failed, so the run has no condition of its own.
  [
    "keys: key attempts exporter",
    "rotation exporter: 4 failed attempts, the last: the vault is closed",
    { jobs: [FAILED_ROTATION], rotations: failing(4, "the vault is closed") },
  ],
  [
    "keys: key attention exporter",
    "rotation exporter: needs attention: nothing is created until rotate --now; 5 failed attempts, the last: no",
    { rotations: failing(5) },
  ],
  [
    "keys: key fallback exporter",
    "rotation exporter: the key in use did not work at 2026-03-10 06:00 UTC, so calls used another key: 401; see usage-export keys",
    { rotations: [makeRotation({ fallback: "401", fallbackAt: NOW })] },
  ],
  [
    "keys: key age exporter",
    "rotation exporter: the key in use is 33 days old and should have been replaced after 30: rotate --dry-run says what is in the way",
    { rotations: OLD_KEY },
  ],
];

test.each(CASES)("%s: the program is not well (%#)", (name, text, part) => {
  const state = healthState(part);
  expect(state.conditions.map((one) => `${one.section}: ${one.name} ${one.subject}`.trim())).toEqual([name]);
  expect(state.conditions).toMatchObject([{ text: matching(text), isWrong: true }]);
  expect(isWell(state)).toBe(false);
});

/** The default of makeBudget, with $834.50 used of $1,000. */
const BUDGET = "limit 2026-03";

const ONE_ORPHAN = makeRotation({ keys: { orphan: 1 } });
const TWO_DUE = makeRotation({ keys: { dueForRemoval: 2 } });
const ONE_DUE = makeRotation({ configured: { maxAgeDays: 30, retire: "delete" }, keys: { dueForRemoval: 1 } });
const UNREAD = { used: null, percent: null, forecast: null, reached: ["50"], daysMissing: 31, daysNotFinal: 0 };
const FORECAST_ONLY = { budgets: [makeBudget({ reached: [] })] };
const OTHER_FILTER = { project: "acme eu", filter: "diarized", unfiltered: false };

const REMINDERS: readonly [name: string, text: string | RegExp, part: Part][] = [
  ["key orphans exporter", /: 1 key whose secret is lost may exist at the service/, { rotations: [ONE_ORPHAN] }],
  ["key removal exporter", /: 2 keys can be removed at the service/, { rotations: [TWO_DUE] }],
  ["key removal exporter", /: 1 key due for removal, and not deleted: "keys" says why/, { rotations: [ONE_DUE] }],
  [
    `budget ${BUDGET} 80`,
    "budget limit (2026-03, estimated) reached 80%: $834.50 of $1,000 (83%), heading for $1,120 (112%); 1 day not read and not counted; 2 days may still change; usage without a price, or charges without an amount, are not counted",
    { budgets: [makeBudget()] },
  ],
  [
    `budget ${BUDGET} 50`,
    "budget limit (2026-03, estimated) reached 50%: no day of it was read yet; the budget is $1,000; 31 days not read and not counted",
    { budgets: [makeBudget({ ...UNREAD, hasUnpriced: false })] },
  ],
  [`budget forecast ${BUDGET}`, /^budget limit \(2026-03, estimated\) will probably be exceeded: /, FORECAST_ONLY],
  [
    "anomaly production",
    "unusual usage of production on 2026-03-06: Requests: 12,345, usually 3,101 to 4,900; also 1 day before it",
    { anomalies: [unusual({ daysBefore: 1 })] },
  ],
  [
    "anomaly production",
    "unusual usage of production on 2026-03-06: Requests: 12,345, and may still change, usually 3,101 to 4,900",
    { anomalies: [unusual({ isFinal: false })] },
  ],
  [
    'anomaly "acme eu" diarized',
    /^unusual usage of acme eu \(filter diarized\) on /,
    { anomalies: [unusual(OTHER_FILTER)] },
  ],
  ["unread", "budgets and anomalies: not read, as reading them failed: timeout", { notRead: "timeout" }],
];

test.each(REMINDERS)("%s: only a reminder (%#)", (name, text, part) => {
  const state = healthState(part);
  expect(state.conditions.map((one) => `${one.name} ${one.subject}`.trim())).toEqual([name]);
  expect(state.conditions).toMatchObject([{ text: matching(text), isWrong: false }]);
  expect(isWell(state)).toBe(true);
});

function unusual(part: Partial<OpenAnomaly>): OpenAnomaly {
  return {
    ...{ project: "production", filter: "all", unfiltered: true, day: "2026-03-06", daysBefore: 0, isFinal: true },
    ...{ metric: "requests", amount: "12345", low: "3100.5", high: "4900", ...part },
  };
}

const CAUSE: FailureCause = {
  ...{ code: "unavailable", project: null, isBillingRefused: false, error: "connect ECONNREFUSED" },
  ...{ slices: 12, slicesWithNumbers: 12, days: 2, projects: 1 },
  since: new Date("2026-03-10T03:23:10Z"),
  isRetried: true,
};

const SINCE = "first seen 2026-03-10 03:23 UTC: 2 days of 1 project could not be read";
const WITH_A_KEY = "with a key that works, usage-export export --project production reads them at once";
const REFUSED = { code: "unauthorized", project: "production", isRetried: false };
const LACKS_SCOPE = { ...REFUSED, isBillingRefused: true, error: "the service answered 403: the key lacks a scope" };
const UNREADABLE = { error: 'expected "rows" to be an array (request id c8b6) (2 attempts)', slicesWithNumbers: 3 };

test.each<[Partial<FailureCause>, string, string]>([
  [{}, "the service is not reachable", "older numbers are shown; the worker tries again"],
  [
    { ...REFUSED, error: "the service answered 403" },
    "the service refuses the API key of production (403)",
    `older numbers are shown; ${WITH_A_KEY}`,
  ],
  [
    LACKS_SCOPE,
    "the API key of production lacks billing:read, so its billing is refused (403)",
    `older numbers are shown; ${WITH_A_KEY}`,
  ],
  [
    { code: "bad_answer", ...UNREADABLE },
    "readings fail",
    'older numbers are shown where there are some; the worker tries again; the newest error: expected "rows" to be an array',
  ],
  [
    { code: "rate_limited", error: "the service answered 429", slicesWithNumbers: 0, isRetried: false },
    "the service asks for fewer calls (429)",
    "no numbers are shown",
  ],
  [
    { ...REFUSED, project: "a b", error: "refused" },
    "the service refuses the API key of a b",
    `older numbers are shown; ${WITH_A_KEY.replace("production", "'a b'")}`,
  ],
  [
    { error: "the key command vault ended with 1", isRetried: false },
    "readings fail",
    "older numbers are shown; the newest error: the key command vault ended with 1",
  ],
  [{ code: null, error: " (2 attempts)", isRetried: false }, "readings fail", "older numbers are shown"],
])("a cause of failed slices is one condition, which says what follows (%#)", (part, what, next) => {
  const cause = { ...CAUSE, ...part };
  const text = `${what}, ${SINCE}, so ${next}`;
  expect(conditionsOf({ causes: [cause], slices: { ...SLICES, failed: 12 } })).toMatchObject([
    { name: "failed", subject: cause.code ?? "other", text },
  ]);
});

test.each<[string, number, Partial<FailureCause>, boolean]>([
  ["a failure one minute old that is tried again within minutes is not notified", 1, {}, true],
  ["a failure one minute old that is not tried again soon is notified", 1, { code: "rejected" }, false],
  ["a failure 15 minutes old is notified", 15, {}, false],
  ["a failure one minute old that nothing tries again is notified", 1, { isRetried: false }, false],
])("%s", (_, minutesAgo, part, isQuiet) => {
  const since = new Date(NOW.getTime() - minutesAgo * 60_000);
  const causes = [{ ...CAUSE, ...part, since }];
  expect(conditionsOf({ causes, slices: { ...SLICES, failed: 12 } })).toMatchObject([{ isQuiet }]);
});

test("causes after the first five are counted in one condition", () => {
  const causes = Array.from({ length: 8 }, (_, i) => ({ ...CAUSE, code: "bad_answer", error: `no ${i}` }));
  const texts = conditionsOf({ causes, slices: { ...SLICES, failed: 8 * 12 } }).map(({ text }) => text);
  expect(texts).toHaveLength(6);
  expect(texts.at(-1)).toBe("36 readings failed for other reasons");
});

const FLEET = Array.from({ length: 300 }, (_, i) => `prod-${i}`);

test("a failure in 300 projects of a rotation is one condition", () => {
  const failures = { failedAttempts: 2, lastError: "the vault is closed" };
  const members = FLEET.map((project) => makeRotation({ rotation: "fleet", project, ...failures }));
  const runs = ["fleet", "single"].map((job) => makeJob({ kind: "rotation", job, failedRun: FAILED_RUN }));
  const state = healthState({ rotations: [...members, makeRotation({ rotation: "single", ...failures })], jobs: runs });
  expect(state.conditions.map(({ name, subject, text }) => [name, subject, text])).toEqual([
    [
      ...["key attempts", "fleet"],
      "rotation fleet: 2 failed attempts, the last: the vault is closed; in 300 of 300 projects (prod-0, prod-1, prod-2 and 297 more)",
    ],
    ["key attempts", "single", "rotation single: 2 failed attempts, the last: the vault is closed"],
  ]);
});
