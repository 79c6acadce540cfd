// What people are told, when, and how often. The situation and what was said come in, notices come out.

import { expect, test } from "vitest";
import type { LastOutcome } from "../../src/db/health.ts";
import type { AlertPhase } from "../../src/health/alerts.ts";
import {
  exportOf,
  FAILED,
  gapsOf,
  jobOf,
  notices,
  OK,
  type RotationFacts,
  rotationOf,
  type Situation,
  type UnreadSlice,
} from "./sample-health-state.ts";

const GAP: UnreadSlice = { series: "production / none / all", day: "2026-03-16", status: "missing" };
const EXPORT = "export nightly";
const GAPS = "gaps nightly";

type Case = {
  readonly now: Situation;
  readonly said?: Readonly<Record<string, AlertPhase>>;
  readonly told: readonly string[];
};

const CASES: Readonly<Record<string, Case>> = {
  "nothing is configured": { now: {}, told: [] },
  "a job has not ended yet": { now: { jobs: exportOf(undefined) }, told: [] },
  "a job ended well and nothing was ever said": { now: { jobs: exportOf(OK) }, told: [] },
  "a job failed": { now: { jobs: exportOf(FAILED) }, told: ["export nightly: wrong"] },
  "it fails again": { now: { jobs: exportOf(FAILED) }, said: { [EXPORT]: "wrong" }, told: [] },
  "it works again": { now: { jobs: exportOf(OK) }, said: { [EXPORT]: "wrong" }, told: ["export nightly: well"] },
  "it goes on working": { now: { jobs: exportOf(OK) }, said: { [EXPORT]: "well" }, told: [] },
  "it fails anew": { now: { jobs: exportOf(FAILED) }, said: { [EXPORT]: "well" }, told: ["export nightly: wrong"] },
  "its runs are gone": { now: { jobs: exportOf(undefined) }, said: { [EXPORT]: "wrong" }, told: [] },
  "a rotation failed": {
    now: { jobs: [jobOf("rotation", "exporter", FAILED)] },
    told: ["rotation exporter: wrong"],
  },
  "a job of the other kind has the same name": {
    now: { jobs: [jobOf("rotation", "nightly", OK)] },
    said: { [EXPORT]: "wrong" },
    told: [],
  },
  "there are gaps": { now: { jobs: exportOf(OK), gaps: gapsOf([GAP]) }, told: ["gaps nightly: wrong"] },
  "the gaps grow": { now: { gaps: gapsOf([GAP, { ...GAP, day: "2026-03-15" }]) }, said: { [GAPS]: "wrong" }, told: [] },
  "the gaps are closed": { now: { gaps: gapsOf([]) }, said: { [GAPS]: "wrong" }, told: ["gaps nightly: well"] },
  "there are none": { now: { gaps: gapsOf([]) }, told: [] },
  "a run reads the gaps": { now: { gaps: gapsOf(undefined) }, told: [] },
  "a run reads the gaps that were told": { now: { gaps: gapsOf(undefined) }, said: { [GAPS]: "wrong" }, told: [] },
  "the job that failed has gaps": {
    now: { jobs: exportOf(FAILED), gaps: gapsOf([GAP]) },
    told: ["export nightly: wrong"],
  },
  "the job that was told to fail has gaps": {
    now: { jobs: exportOf(FAILED), gaps: gapsOf([GAP]) },
    said: { [EXPORT]: "wrong" },
    told: [],
  },
  "it works again and left gaps": {
    now: { jobs: exportOf(OK), gaps: gapsOf([GAP]) },
    said: { [EXPORT]: "wrong" },
    told: ["export nightly: well", "gaps nightly: wrong"],
  },
  "a rotation of the same name as the export fails": {
    now: { jobs: [jobOf("rotation", "nightly", FAILED)], gaps: gapsOf([GAP]) },
    told: ["rotation nightly: wrong", "gaps nightly: wrong"],
  },
  "a rotation is as it should be": { now: { rotations: [rotationOf()] }, told: [] },
  "two things are wrong with a rotation, and one is known": {
    now: { rotations: [rotationOf({ dueForRemoval: 1, fallback: true })] },
    said: { "key removal exporter": "wrong" },
    told: ["key fallback exporter: wrong"],
  },
};

test.each(Object.entries(CASES))("%s", (_, { now, said, told }) => {
  expect(notices(now, said).map(({ subject, state }) => `${subject}: ${state}`)).toEqual(told);
});

const ROTATIONS: readonly [string, RotationFacts, RegExp | undefined][] = [
  ["no key yet", { ageDays: null }, undefined],
  ["four failed attempts", { failedAttempts: 4, lastError: "no" }, undefined],
  [
    "too many failed attempts",
    { failedAttempts: 5, lastError: "the service answered 403" },
    /^Rotation exporter: 5 attempts failed in a row, .* "rotate --now"\. The last error: the service answered 403$/,
  ],
  ["a key as old as it may be and two days", { ageDays: 32 }, undefined],
  ["a key older than that", { ageDays: 33 }, /is 33 days old and should have been replaced after 30/],
  ["a refused key", { fallback: true }, /the service refused the key in use, and the one before it/],
  ["a lost key", { orphans: 1 }, /: 1 key may exist at the service whose secret is lost/],
  ["keys to remove", { dueForRemoval: 2 }, /: 2 keys can be removed at the service/],
  ["keys that are deleted by themselves", { dueForRemoval: 2, retire: "delete" }, undefined],
  [
    "keys that should have been deleted by themselves",
    { dueForRemoval: 2, longDueForRemoval: 1, retire: "delete" },
    /: 1 key due for removal, and not deleted: "keys" says why/,
  ],
];

test.each(ROTATIONS)("a rotation with %s", (_, state, text) => {
  expect(notices({ rotations: [rotationOf(state)] })).toEqual(
    text ? [expect.objectContaining({ state: "wrong", text: expect.stringMatching(text) })] : [],
  );
});

test.each(["attention", "fallback", "age", "orphans", "removal"])(
  "the end of the alert %s is notified, too",
  (concern) => {
    const told = notices({ rotations: [rotationOf()] }, { [`key ${concern} exporter`]: "wrong" });

    expect(told).toEqual([
      {
        subject: `key ${concern} exporter`,
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
    "slices that were empty",
    { failed: 0, suspect: 1, error: null, trigger: "catchup" },
    "Export nightly failed in its run of 2026-03-17 02:15 UTC (catchup): 1 of 14 slices empty where there were numbers, which stay.",
  ],
  [
    "both, of one slice each",
    { planned: 1, failed: 1, suspect: 1, error: "no" },
    "Export nightly failed in its run of 2026-03-17 02:15 UTC (schedule): 1 of 1 slice not read, 1 of 1 slice empty where there were numbers, which stay. The first error: no",
  ],
  [
    "nothing that is counted",
    { planned: 0, failed: 0, error: "the key file is gone" },
    "Export nightly failed in its run of 2026-03-17 02:15 UTC (schedule). The first error: the key file is gone",
  ],
];

test.each(FAILURES)("a failure with %s says so", (_, outcome, text) => {
  expect(notices({ jobs: exportOf({ ...FAILED, ...outcome }) })).toMatchObject([{ text }]);
});

test("a recovery names the run", () => {
  expect(notices({ jobs: exportOf(OK) }, { [EXPORT]: "wrong" })).toMatchObject([
    { text: "Export nightly works again: its run of 2026-03-17 02:15 UTC (schedule) went well." },
  ]);
});

test("a gap of one slice names its day and series", () => {
  expect(notices({ gaps: gapsOf([GAP]) })).toMatchObject([
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

  expect(notices({ gaps: gapsOf(slices) })).toMatchObject([
    {
      text:
        "Export nightly has gaps: 15 slices of 3 days from 2026-03-01 to 2026-03-16 (10 missing, 5 failed), of " +
        "production / none / all, production / model / all, production / tags / all and 2 more series.",
    },
  ]);
});

function textOf(error: string, scrub?: (text: string) => string): string {
  return notices({ jobs: exportOf({ ...FAILED, error }) }, {}, scrub)[0]?.text ?? "";
}

test("what Slack takes for its own is escaped", () => {
  expect(textOf("<!channel> & <https://evil.example|click>")).toMatch(
    /: &lt;!channel&gt; &amp; &lt;https:\/\/evil\.example\|click&gt;$/,
  );
});

test("an error of several lines stays on one", () => {
  expect(textOf("one\n\ttwo\r\n three")).toMatch(/: one two three$/);
});

test("a long text is cut, and neither an escape nor a character is cut in two", () => {
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
