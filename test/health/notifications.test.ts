// Which notifications follow from a health state and from what was sent before.

import { expect, test } from "vitest";
import type { LastOutcome } from "../../src/db/health.ts";
import type { Phase } from "../../src/health/notifications.ts";
import {
  exportOf,
  FAILED,
  gapsOf,
  type HealthParts,
  jobOf,
  notificationsFor,
  OK,
  type RotationFacts,
  rotationOf,
  type UnreadSlice,
} from "./sample-health-state.ts";

const GAP: UnreadSlice = { series: "production / none / all", day: "2026-03-16", status: "missing" };
const EXPORT = "export nightly";
const GAPS = "gaps nightly";

type Case = {
  readonly now: HealthParts;
  readonly lastSent?: Readonly<Record<string, Phase>>;
  readonly sent: readonly string[];
};

const CASES: Readonly<Record<string, Case>> = {
  "nothing is configured": { now: {}, sent: [] },
  "a job has not ended yet": { now: { jobs: exportOf(undefined) }, sent: [] },
  "a job ended well and nothing was sent before": { now: { jobs: exportOf(OK) }, sent: [] },
  "a job failed": { now: { jobs: exportOf(FAILED) }, sent: ["export nightly: wrong"] },
  "a job fails again after its failure was sent": {
    now: { jobs: exportOf(FAILED) },
    lastSent: { [EXPORT]: "wrong" },
    sent: [],
  },
  "a job works again after its failure was sent": {
    now: { jobs: exportOf(OK) },
    lastSent: { [EXPORT]: "wrong" },
    sent: ["export nightly: well"],
  },
  "a job goes on working after its recovery was sent": {
    now: { jobs: exportOf(OK) },
    lastSent: { [EXPORT]: "well" },
    sent: [],
  },
  "a job fails after its recovery was sent": {
    now: { jobs: exportOf(FAILED) },
    lastSent: { [EXPORT]: "well" },
    sent: ["export nightly: wrong"],
  },
  "the runs of a job are gone after its failure was sent": {
    now: { jobs: exportOf(undefined) },
    lastSent: { [EXPORT]: "wrong" },
    sent: [],
  },
  "a rotation failed": {
    now: { jobs: [jobOf("rotation", "exporter", FAILED)] },
    sent: ["rotation exporter: wrong"],
  },
  "a job of the other kind has the same name": {
    now: { jobs: [jobOf("rotation", "nightly", OK)] },
    lastSent: { [EXPORT]: "wrong" },
    sent: [],
  },
  "a job has gaps": { now: { jobs: exportOf(OK), gaps: gapsOf([GAP]) }, sent: ["gaps nightly: wrong"] },
  "gaps grow after they were sent": {
    now: { gaps: gapsOf([GAP, { ...GAP, day: "2026-03-15" }]) },
    lastSent: { [GAPS]: "wrong" },
    sent: [],
  },
  "gaps are closed after they were sent": {
    now: { gaps: gapsOf([]) },
    lastSent: { [GAPS]: "wrong" },
    sent: ["gaps nightly: well"],
  },
  "a job has no gaps and none were sent": { now: { gaps: gapsOf([]) }, sent: [] },
  "a run in progress may read the gaps": { now: { gaps: gapsOf(undefined) }, sent: [] },
  "a run in progress may read gaps that were sent": {
    now: { gaps: gapsOf(undefined) },
    lastSent: { [GAPS]: "wrong" },
    sent: [],
  },
  "a job that failed has gaps": {
    now: { jobs: exportOf(FAILED), gaps: gapsOf([GAP]) },
    sent: ["export nightly: wrong"],
  },
  "a job has gaps after its failure was sent": {
    now: { jobs: exportOf(FAILED), gaps: gapsOf([GAP]) },
    lastSent: { [EXPORT]: "wrong" },
    sent: [],
  },
  "a job works again with gaps left after its failure was sent": {
    now: { jobs: exportOf(OK), gaps: gapsOf([GAP]) },
    lastSent: { [EXPORT]: "wrong" },
    sent: ["export nightly: well", "gaps nightly: wrong"],
  },
  "a rotation of the same name as the export fails": {
    now: { jobs: [jobOf("rotation", "nightly", FAILED)], gaps: gapsOf([GAP]) },
    sent: ["rotation nightly: wrong", "gaps nightly: wrong"],
  },
  "a rotation has no problem": { now: { rotations: [rotationOf()] }, sent: [] },
  "a rotation has two problems and one was sent before": {
    now: { rotations: [rotationOf({ dueForRemoval: 1, fallback: true })] },
    lastSent: { "key removal exporter": "wrong" },
    sent: ["key fallback exporter: wrong"],
  },
};

test.each(Object.entries(CASES))("what is sent if %s", (_, { now, lastSent, sent }) => {
  expect(notificationsFor(now, lastSent).map(({ subject, state }) => `${subject}: ${state}`)).toEqual(sent);
});

test("more than five jobs that fail at once are one notification, which covers each of them", () => {
  const jobs = ["a", "b", "c", "d", "e", "f"].map((name) => jobOf("export", name, FAILED));
  const covers = jobs.map(({ job }) => `export ${job}`);
  expect(notificationsFor({ jobs: jobs.slice(1) })).toHaveLength(5);
  expect(notificationsFor({ jobs })).toEqual([
    {
      ...{ subject: "many export", state: "wrong", covers },
      text: expect.stringMatching(
        /^6 changes at once of "export"; .* b, c, d and 2 more: .* The first: export a failed/,
      ),
    },
  ]);
});

const ROTATIONS: readonly [string, RotationFacts, RegExp | undefined][] = [
  ["no key yet", { ageDays: null }, undefined],
  ["four failed attempts", { failedAttempts: 4, lastError: "no" }, undefined],
  [
    "too many failed attempts",
    { failedAttempts: 5, lastError: "the service answered 403" },
    /^Rotation exporter: needs attention: .* until rotate --now; 5 failed attempts, the last: the service answered 403$/,
  ],
  ["a key two days over its maximum age", { ageDays: 32 }, undefined],
  ["a key three days over its maximum age", { ageDays: 33 }, /is 33 days old and should have been replaced after 30/],
  [
    "a key in use that was refused",
    { fallback: true },
    /the key in use was refused \(.*\), and the one before it was used in its place/,
  ],
  ["a key whose secret is lost", { orphans: 1 }, /: 1 key may exist at the service whose secret is lost/],
  ["keys that a person should remove", { dueForRemoval: 2 }, /: 2 keys can be removed at the service/],
  ["keys that are about to be deleted automatically", { dueForRemoval: 2, retire: "delete" }, undefined],
  [
    "keys that should have been deleted automatically",
    { dueForRemoval: 2, longDueForRemoval: 1, retire: "delete" },
    /: 1 key due for removal, and not deleted: "keys" says why/,
  ],
];

test.each(ROTATIONS)("what is sent about a rotation with %s", (_, state, text) => {
  expect(notificationsFor({ rotations: [rotationOf(state)] })).toEqual(
    text ? [expect.objectContaining({ state: "wrong", text: expect.stringMatching(text) })] : [],
  );
});

test.each(["attention", "fallback", "age", "orphans", "removal"])(
  "the end of the condition %s of a rotation is sent",
  (condition) => {
    const sent = notificationsFor({ rotations: [rotationOf()] }, { [`key ${condition} exporter`]: "wrong" });

    expect(sent).toEqual([
      {
        subject: `key ${condition} exporter`,
        state: "well",
        text: expect.stringMatching(/^Rotation exporter: .*\.$/),
      },
    ]);
  },
);

const FAILURES: readonly [string, Partial<LastOutcome>, string][] = [
  [
    "slices that were not read",
    {},
    "Export nightly failed in its run of 2026-03-17 02:15 UTC (schedule): 2 of 14 slices not read. The first error: the service answered 503",
  ],
  [
    "suspect slices",
    { failed: 0, suspect: 1, error: null, trigger: "catchup" },
    "Export nightly failed in its run of 2026-03-17 02:15 UTC (catchup): 1 of 14 slices empty where there were numbers, which stay.",
  ],
  [
    "one slice of each kind",
    { planned: 1, failed: 1, suspect: 1, error: "no" },
    "Export nightly failed in its run of 2026-03-17 02:15 UTC (schedule): 1 of 1 slice not read, 1 of 1 slice empty where there were numbers, which stay. The first error: no",
  ],
  [
    "only the error if no slice is counted",
    { planned: 0, failed: 0, error: "the key file is gone" },
    "Export nightly failed in its run of 2026-03-17 02:15 UTC (schedule). The first error: the key file is gone",
  ],
];

test.each(FAILURES)("the notification about a failed run names %s", (_, outcome, text) => {
  expect(notificationsFor({ jobs: exportOf({ ...FAILED, ...outcome }) })).toMatchObject([{ text }]);
});

test("the notification about a recovery names the run", () => {
  expect(notificationsFor({ jobs: exportOf(OK) }, { [EXPORT]: "wrong" })).toMatchObject([
    { text: "Export nightly works again: its run of 2026-03-17 02:15 UTC (schedule) went well." },
  ]);
});

test("a gap of one slice names its day and series", () => {
  expect(notificationsFor({ gaps: gapsOf([GAP]) })).toMatchObject([
    { text: "Export nightly has gaps: 1 slice of 2026-03-16 (1 missing, 0 failed), of production / none / all." },
  ]);
});

test("gaps of many series name the first of them, the oldest day and the newest", () => {
  const series = ["none", "model", "tags", "method", "endpoint"].map((grouping) => `production / ${grouping} / all`);
  const slices = series.flatMap((one): UnreadSlice[] => [
    { series: one, day: "2026-03-16", status: "failed" },
    { series: one, day: "2026-03-01", status: "missing" },
    { series: one, day: "2026-03-09", status: "missing" },
  ]);

  expect(notificationsFor({ gaps: gapsOf(slices) })).toMatchObject([
    {
      text:
        "Export nightly has gaps: 15 slices of 3 days from 2026-03-01 to 2026-03-16 (10 missing, 5 failed), of " +
        "production / none / all, production / model / all, production / tags / all and 2 more series.",
    },
  ]);
});

function textOf(error: string, scrub?: (text: string) => string): string {
  return notificationsFor({ jobs: exportOf({ ...FAILED, error }) }, {}, scrub)[0]?.text ?? "";
}

test("characters that Slack interprets are escaped", () => {
  expect(textOf("<!channel> & <https://evil.example|click>")).toMatch(
    /: &lt;!channel&gt; &amp; &lt;https:\/\/evil\.example\|click&gt;$/,
  );
});

test("an error of several lines is sent on one line", () => {
  expect(textOf("one\n\ttwo\r\n three")).toMatch(/: one two three$/);
});

test("a long text is cut, but never inside an escape or a character", () => {
  const text = textOf("&😀".repeat(400));
  const plain = text.replaceAll("&amp;", "&");

  expect([...plain]).toHaveLength(500);
  expect(plain).toMatch(/(&😀)+&?…$/u);
});

test("a secret is hidden before the text is cut or escaped", () => {
  const hide = (text: string) => text.replaceAll("open&sesame", "[secret]");

  expect(textOf("open&sesame", hide)).toMatch(/: \[secret\]$/);
  const before = textOf("").length;
  expect(textOf(`${"x".repeat(495 - before)}open&sesame`, hide)).not.toContain("open");
});
