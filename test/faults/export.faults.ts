// Interrupts an export at every request, answer and database message, alone and beside others. One ordinary export follows, which must
// complete everything.

import { afterAll } from "vitest";
import { CAPS, openExportLab } from "./export-lab.ts";
import { interruptions } from "./interrupt.ts";
import { inLab } from "./lab.ts";
import { sweepKinds } from "./sweep-kinds.ts";

const lab = await openExportLab();
afterAll(() => lab[Symbol.asyncDispose]());

sweepKinds(interruptions({ part: "export", file: "export.faults.ts", command: ["export"], ...inLab(lab, CAPS) }), [
  { kind: "kill", ci: [39, 0, 193], all: [1, 7, 13], atOnce: 2 },
  { kind: "kill twice", ci: [97], all: [7], atOnce: 2 },
  { kind: "cut", ci: [49, 191], all: [1, 7, 13], atOnce: 2 },
  { kind: "cut mid-answer", ci: [3], all: [1, 1], atOnce: 2 },
  { kind: "delay", ci: [0, 191], all: [0, 19, 19], atOnce: 2 },
  { kind: "SQL error before", ci: [601], all: [23], atOnce: 2 },
  { kind: "SQL error after", ci: [601], all: [23], atOnce: 2 },
  // The cases of these kinds mostly wait for limits of locks, transactions and statements.
  { kind: "stop and continue", ci: [97], all: [5, 19], atOnce: 4 },
  { kind: "black hole", ci: [97], all: [1, 7], atOnce: 8 },
]);
