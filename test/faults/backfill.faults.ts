// Interrupts a backfill at every request, answer and database message of it, and lets it go on: what was stored by then is not
// asked for again.

import { afterAll, test } from "vitest";
import { addDays, dayOf } from "../../src/emulator/days.ts";
import { sliceName } from "./case-evidence.ts";
import { statuses } from "./evidence.ts";
import { calibration, casesOf, type Interruption, interrupted } from "./interrupt.ts";
import { type Case, openLab, PROJECT_ID } from "./lab.ts";
import { LIMIT, sweep } from "./sweep.ts";

const FILE = "backfill.faults.ts";
const GROUPINGS = ["none", "tags"];
const FILTERS = { all: "" };
/** Two requests a series, of 31 days at most. */
const DAYS = 40;
const DAYS_BEFORE = 5;
const CAPS = { concurrent: 2, attempts: 5 };

const today = dayOf(new Date());
const range = (days: number) => ["--from", addDays(today, -days), "--to", addDays(today, -1)];
const dayNames = Array.from({ length: DAYS }, (_, i) => addDays(today, i - DAYS));

const lab = await openLab({
  filters: FILTERS,
  due: GROUPINGS.flatMap((grouping) => dayNames.map((day) => sliceName(`${grouping} / `, day))),
  before: [["backfill", ...range(DAYS_BEFORE)]],
  config: (baseUrl) => ({
    service: { baseUrl, requestsPerSecond: 100, maxConcurrent: CAPS.concurrent, timeoutSeconds: 2 },
    projects: [{ id: PROJECT_ID, name: "production", key: { env: "USAGE_EXPORT_KEY" } }],
    exports: [
      { name: "nightly", schedule: "15 2 * * *", projects: ["production"], window: { days: 2 }, groupings: GROUPINGS },
    ],
  }),
});
afterAll(() => lab[Symbol.asyncDispose]());

/** What is complete when the backfill goes on is left alone by it. */
async function askNothingTwice({ db, history }: Case): Promise<() => readonly string[]> {
  const stored = [...(await statuses(db, FILTERS))].flatMap(([slice, status]) =>
    status === "complete" ? [slice] : [],
  );
  return () => {
    const asked = history.exchanges.flatMap(({ who, asked }) =>
      who === "healer" && asked ? asked.days.map((day) => sliceName(asked.series, day)) : [],
    );
    return stored.filter((slice) => asked.includes(slice)).map((slice) => `${slice} was stored and asked for again`);
  };
}

const BACKFILL: Interruption = { lab, command: ["backfill", ...range(DAYS)], caps: CAPS, promise: askNothingTwice };
const points = calibration(BACKFILL);

test.each([
  { kind: "kill", strides: [17, 71], atOnce: 3 },
  { kind: "cut", strides: [23, 71], atOnce: 3 },
  { kind: "half", strides: [1], atOnce: 3 },
  { kind: "stop", strides: [43], atOnce: 12 },
  { kind: "hole", strides: [43], atOnce: 16 },
])("backfill: $kind", LIMIT, async ({ kind, strides, atOnce }) => {
  const cases = () => casesOf(points, { kind, strides });
  const run = (name: string) => interrupted(BACKFILL, name);
  await sweep({ part: `backfill, ${kind}`, file: FILE, test: `backfill: ${kind}`, cases, atOnce, run });
});
