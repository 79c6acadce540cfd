// Interrupts an export at every request, answer and database message of it, alone and beside others, and lets one ordinary
// export follow, which must make everything whole.

import { afterAll, test } from "vitest";
import { nameOf, ofDatabase } from "./case-plan.ts";
import { CAPS, openExportLab } from "./export-lab.ts";
import { calibration, casesOf, type Interruption, interrupted } from "./interrupt.ts";
import { every, LIMIT, SQLSTATES, sweep } from "./sweep.ts";

const FILE = "export.faults.ts";

const lab = await openExportLab();
afterAll(() => lab[Symbol.asyncDispose]());
const EXPORT: Interruption = { lab, command: ["export"], caps: CAPS };
const points = calibration(EXPORT);
const run = (name: string) => interrupted(EXPORT, name);

test.each([
  { kind: "kill", strides: [11, 37, 53], atOnce: 3 },
  { kind: "cut", strides: [13, 47, 61], atOnce: 3 },
  { kind: "half", strides: [2], atOnce: 3 },
  // These mostly wait: for limits of locks, transactions and statements.
  { kind: "stop", strides: [19, 53], atOnce: 12 },
  { kind: "hole", strides: [37, 83], atOnce: 16 },
])("export: $kind", LIMIT, async ({ kind, strides, atOnce }) => {
  const cases = () => casesOf(points, { kind, strides });
  await sweep({ part: `export, ${kind}`, file: FILE, test: `export: ${kind}`, cases, atOnce, run });
});

test("export: SQL errors", LIMIT, async () => {
  const cases = async () => {
    const all = await points(1, ofDatabase);
    // Each code begins at another statement.
    return SQLSTATES.flatMap((sqlstate, index) =>
      every(61, all.slice(2 * index)).map((point) => nameOf({ replicas: 1, kind: `error ${sqlstate}`, point })),
    );
  };
  await sweep({ part: "export, SQL errors", file: FILE, test: "export: SQL errors", cases, atOnce: 3, run });
});
