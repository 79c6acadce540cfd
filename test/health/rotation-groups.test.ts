// A rotation of many projects is one job and one state of keys, whatever goes wrong in however many of them.

import { expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { withDiscovered } from "../../src/config/discovered.ts";
import type { RotationRow } from "../../src/db/keys/status.ts";
import { problemsOf } from "../../src/health/conditions.ts";
import { metricSamples } from "../../src/health/gauges.ts";
import { groupFinder, ledgerGroups, mergeJobs, mergeRotations } from "../../src/health/rotation-groups.ts";
import { healthState, jobLine, NOW, rotationLine } from "./sample-health-state.ts";

const PROJECTS = 300;
const members = Array.from({ length: PROJECTS }, (_, i) => ({
  ...{ name: `fleet/p${i}`, group: "fleet", project: { name: `prod-${i}` } },
}));
const groupOf = groupFinder([...members, { name: "single", project: { name: "lab" } }]);

/** The state in which every project fails for one reason, beside a rotation of one project. */
function failingFleet() {
  const failed = {
    ...{ status: "failed" as const, trigger: "schedule", startedAt: NOW, error: "the vault is closed" },
    ...{ planned: 0, suspect: 0, failed: 0, overCompleteDays: true },
  };
  const job = (name: string) =>
    jobLine({ kind: "rotation", job: name, outcome: failed, failedRun: failed, failures: 2 });
  const row = (rotation: string): RotationRow =>
    rotationLine({ rotation, failedAttempts: 2, lastError: "the vault is closed" });
  const names = [...members.map(({ name }) => name), "single"];
  const rotations = mergeRotations(names.map(row), groupOf).map((one) => ({
    ...one,
    configured: { maxAgeDays: 30, retire: "keep" as const },
    warnings: [],
  }));
  return healthState({ jobs: mergeJobs(names.map(job), groupOf), rotations });
}

test("300 rotations that fail for one reason are one alert, with its name and the first projects", () => {
  expect(problemsOf(failingFleet()).faults).toMatchObject([
    {
      ...{ name: "key attempts", subject: "fleet" },
      text: "rotation fleet: 2 failed attempts, the last: in 300 of 300 projects (prod-0, prod-1, prod-2 and 297 more), the vault is closed",
    },
    { name: "key attempts", subject: "single" },
  ]);
});

test("300 overdue rotations are one alert", () => {
  const jobs = members.map(({ name }, i) =>
    jobLine({
      kind: "rotation",
      job: name,
      overdueSince: new Date(NOW.getTime() - i * 1000),
      series: jobLine().series,
    }),
  );
  const alerts = problemsOf(healthState({ jobs: mergeJobs(jobs, groupOf) })).faults;
  expect(alerts.map(({ name, subject }) => [name, subject])).toEqual([["overdue", "rotation fleet"]]);
  expect(alerts[0]?.text).toContain("is overdue since 2026-03-10 05:55");
});

test("the metrics have one series for the rotation, with the highest number, and the sum of keys", () => {
  const samples = metricSamples(failingFleet());
  const of = (gauge: string) =>
    samples
      .filter((one) => one.gauge === gauge)
      .map(({ labels, value }) => [labels.rotation ?? labels.job_name, value]);
  expect(of("rotation_failed_attempts")).toEqual([
    ["fleet", 2],
    ["single", 2],
  ]);
  expect(of("job_failures")).toEqual([
    ["fleet", 2],
    ["single", 2],
  ]);
});

test("a project that works does not hide one that fails, and the last run shown is the one that failed", () => {
  const run = {
    ...jobLine().lastRun,
    job: "x",
    kind: "rotation",
    trigger: "schedule",
    finishedAt: NOW,
    skippedSince: 0,
  };
  const jobs = ["ok", "failed", "ok"].map((status, i) =>
    jobLine({
      ...{ kind: "rotation", job: `fleet/p${i}` },
      lastRun: { ...run, status, startedAt: new Date(NOW.getTime() + i * 1000), error: status === "ok" ? null : "no" },
    }),
  );
  expect(mergeJobs(jobs, groupOf)).toMatchObject([
    {
      job: "fleet",
      projects: 3,
      lastRun: { job: "fleet", status: "failed", error: "in 1 of 3 projects (prod-1), the newest: no" },
    },
  ]);
});

test("the rotations of projects that are gone are one for each name, and those of one project and those left out are not among them", () => {
  const config = parseConfig(
    JSON.stringify({
      service: { baseUrl: "https://api.example.com" },
      projects: [
        { discover: true, key: { env: "ACCOUNT_KEY" } },
        { id: "lab", name: "lab", key: { env: "LAB_KEY" } },
      ],
      rotations: [
        { ...WRITTEN, name: "fleet", projects: ["prod-*"], deliver: [{ file: "keys/{project}-{id}" }] },
        { ...WRITTEN, name: "lab/own", project: "lab", deliver: [{ file: "keys/own" }] },
      ],
    }),
    { source: "the test", baseDir: "/srv" },
  );
  const seen = { list: "env ACCOUNT_KEY", firstSeenAt: NOW, namedAt: NOW, missingSince: undefined };
  const known = [
    { ...seen, id: "p1", name: "prod-1", vanishedAt: undefined },
    { ...seen, id: "p2", name: "prod-2/eu", vanishedAt: undefined },
    { ...seen, id: "p3", name: "prod-3", vanishedAt: NOW },
  ];
  const rows = [
    ...[line("fleet/gone-1", "gone-1"), line("fleet/p1", "p1"), line("fleet/p2", "p2"), line("fleet/p3", null)],
    ...[line("lab/own", "lab"), line("lab/previous", "lab"), line("old/x/y", "x/y"), line("single", "lab")],
    line("team/old", "lab"),
  ];
  const merged = mergeRotations(rows, ledgerGroups(withDiscovered(config, known), rows));
  expect(merged.map(({ rotation, projects, keys }) => [rotation, projects, keys.active])).toEqual([
    ["fleet, projects that are gone", 2, 2],
    ["fleet", 2, 2],
    ["lab/own", undefined, 1],
    ["lab/previous", undefined, 1],
    ["old, projects that are gone", 1, 1],
    ["single", undefined, 1],
    ["team/old", undefined, 1],
  ]);
});

const WRITTEN = { schedule: "0 4 * * *", comment: "exporter", scopes: ["member"] };

function line(rotation: string, projectId: string | null): RotationRow {
  return rotationLine({ rotation, projectId });
}
