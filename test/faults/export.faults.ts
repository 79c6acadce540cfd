// Interrupts an export at every request, answer and database message. One ordinary export follows, which must complete everything. The
// strides `ci` and `all` are of an export alone, then of one beside another, then beside two others (sweep.ts).

import { interruptions } from "./interrupt.ts";
import { daysAgo, inLab, openLab } from "./lab.ts";
import { sweepKinds } from "./sweep.ts";

/** Four series of two days. Before the cases one series is stored whole, one with one of its days, two not at all. */
const lab = await openLab({
  days: 2,
  groupings: ["none", "tags"],
  filters: [{ name: "all" }, { name: "diarized", features: { diarize: "true" } }],
  caps: { concurrent: 3, attempts: 5 },
  before: [
    ["export", "--grouping", "none", "--filter", "all"],
    ["export", "--grouping", "tags", "--filter", "all", "--day", daysAgo(2)],
  ],
});

sweepKinds(interruptions({ part: "export", file: "export.faults.ts", command: ["export"], ...inLab(lab) }), [
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
