import { expect, test } from "vitest";
import { concernsOf } from "../../../src/monitor/dashboard/verdict.ts";
import { WELL } from "../test-monitor.ts";
import { jobLine, NOW, operations } from "./sample-operations.ts";

const SLICES = operations().slices;
const ROTATION = { rotation: "exporter", maxAgeDays: 30, keys: [] };

test("where all is well there is nothing to look at, whatever runs failed before", () => {
  const paused = jobLine({ paused: { at: NOW, why: "moving", by: "me" } });
  expect(concernsOf(operations({ jobs: [paused] }), WELL)).toEqual([]);
});

test.each([
  [{ slices: { ...SLICES, missing: 1 } }, "1 slice missing: due and never read", "gaps"],
  [{ slices: { ...SLICES, failed: 2 } }, "2 slices failed: the newest reading went wrong", "gaps"],
  [{ slices: { ...SLICES, suspect: 3 } }, "3 slices suspect: empty where there were numbers, which stay", "gaps"],
  [{ jobs: [jobLine({ overdueSince: NOW })] }, "export nightly is overdue: no worker has taken it up", "jobs"],
  [{ rotations: [{ ...ROTATION, warnings: ["2 failed attempts"] }] }, "rotation exporter: 2 failed attempts", "keys"],
])("%o is something to look at", (part, text, section) => {
  expect(concernsOf(operations(part), WELL)).toEqual([{ text, section }]);
});

test("what keeps this worker from its work is said first", () => {
  const health = { live: true, ready: false, reasons: ["the database does not answer"] };
  expect(concernsOf(operations({ slices: { ...SLICES, missing: 1 } }), health)).toMatchObject([
    { text: "this worker can't work now: the database does not answer" },
    { section: "gaps" },
  ]);
});
