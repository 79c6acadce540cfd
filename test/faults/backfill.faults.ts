// Interrupts a backfill at every request, answer and database message. The backfill that follows must not request what is stored.

import { sliceName } from "./case-evidence.ts";
import { statuses } from "./evidence.ts";
import { interruptions, RECOVERY } from "./interrupt.ts";
import { type Case, daysAgo, inLab, openLab } from "./lab.ts";
import { sweepKinds } from "./sweep.ts";

/** More than the 31 days that a request covers at most, so each series takes two requests. */
const DAYS = 40;
/** How many of the days are stored before the cases. */
const DAYS_BEFORE = 5;
const range = (days: number) => ["--from", daysAgo(days), "--to", daysAgo(1)];

const lab = await openLab({
  days: DAYS,
  groupings: ["none", "tags"],
  caps: { concurrent: 2, attempts: 5 },
  before: [["backfill", ...range(DAYS_BEFORE)]],
  job: { window: { days: 2 } },
});

/** Returns the check that the recovery run requests no slice that is complete now. */
async function askedTwiceCheck({ db, history }: Case): Promise<() => readonly string[]> {
  const stored = [...(await statuses(db, lab.filters))].flatMap(([slice, status]) =>
    status === "complete" ? [slice] : [],
  );
  return () => {
    const asked = history.exchanges.flatMap(({ who, asked }) =>
      who === RECOVERY && asked ? asked.days.map((day) => sliceName(asked.series, day)) : [],
    );
    return stored.filter((slice) => asked.includes(slice)).map((slice) => `${slice} was stored and asked for again`);
  };
}

sweepKinds(
  interruptions({
    part: "backfill",
    file: "backfill.faults.ts",
    command: ["backfill", ...range(DAYS)],
    afterRefusal: ["backfill", ...range(DAYS), "--only", "failed"],
    prepareOwnCheck: askedTwiceCheck,
    ...inLab(lab),
  }),
  [
    { kind: "kill", ci: [73, 193], all: [7, 15], atOnce: 2 },
    { kind: "kill twice", ci: [113], all: [15], atOnce: 2 },
    { kind: "cut", ci: [73], all: [7, 15], atOnce: 2 },
    { kind: "cut mid-answer", ci: [3], all: [1], atOnce: 2 },
    { kind: "SQL error before", ci: [797], all: [47], atOnce: 2 },
    { kind: "SQL error after", ci: [797], all: [47], atOnce: 2 },
    { kind: "stop and continue", ci: [113], all: [15], atOnce: 4 },
    { kind: "black hole", ci: [113], all: [15], atOnce: 8 },
  ],
);
