// Which jobs, series and days the command line may choose, and the error for each mistake.

import { expect, test } from "vitest";
import {
  type BackfillOptions,
  chooseBackfill,
  chooseJobs,
  choosePeriod,
  type PeriodOptions,
  type SelectionOptions,
} from "../../src/cli/selection.ts";
import { parseConfig } from "../../src/config/config.ts";
import { smallConfig } from "./small-config.ts";

const TODAY = "2026-03-18";
const YESTERDAY = "2026-03-17";

const CONFIG = parseConfig(
  JSON.stringify(
    smallConfig("https://api.example.com", {
      exports: [
        { groupings: ["none", "tags"], filters: [{ name: "all" }, { name: "diarized", features: { diarize: true } }] },
        { name: "weekly", groupings: ["tags", "model"] },
        { name: "dateless", groupings: ["method"], window: undefined },
      ],
    }),
  ),
  "jobs.config.json",
  "/",
);

function backfill(options: Partial<BackfillOptions>) {
  return chooseBackfill(CONFIG, { from: "2026-03-01", to: YESTERDAY, only: "missing", ...options }, TODAY);
}

test.each<[Partial<BackfillOptions>, string]>([
  [{ to: TODAY }, "--to: expected 2026-03-17 or before, the newest day that is over in UTC; got 2026-03-18"],
  [{ from: "2026-03-19", to: "2026-03-20" }, "--to: expected 2026-03-17 or before, the newest day that is over in UTC"],
  [{ to: "2026-02-28" }, "--from: expected 2026-02-28 or before, which is the last day; got 2026-03-01"],
  [{ from: "2016-03-09" }, "--from: expected 2016-03-10 or after, as there are at most 3660 days"],
  [
    { job: ["dateless"] },
    'nothing to backfill: only exports with a "window" can ask for days; without one: "dateless"',
  ],
])("the backfill %j is refused", (options, message) => {
  expect(() => backfill(options)).toThrow(message);
});

test.each(["2016-03-10", YESTERDAY])("a backfill can begin on %s", (from) => {
  expect(backfill({ from }).range).toEqual({ start: from, end: YESTERDAY });
});

test("a backfill names the exports without a window", () => {
  const { jobs, windowless } = backfill({});
  const chosen = jobs.map(({ job, series }) => [job.name, ...series.map(({ grouping }) => grouping)]);
  expect({ chosen, windowless }).toEqual({
    chosen: [
      ["nightly", "none", "tags", "none", "tags"],
      // Usage by tags is read once, for the first export that has it.
      ["weekly", "model"],
    ],
    windowless: ["dateless"],
  });
});

test.each<[SelectionOptions, string]>([
  [
    { job: ["nightli"] },
    '--job: "nightli" is not configured (there is "nightly", "weekly", "dateless"); did you mean "nightly"?',
  ],
  [
    { project: ["producton"] },
    '--project: "producton" is not configured (there is "production"); did you mean "production"?',
  ],
  [
    { filter: ["diarised"] },
    '--filter: "diarised" is not configured (there is "all", "diarized"); did you mean "diarized"?',
  ],
  [{ grouping: ["accessor"] }, "no export has this combination of project, grouping and filter"],
  [{ job: ["nightly"], day: ["2026-03-19"] }, "--day: 2026-03-19 has not begun; today is 2026-03-18 in UTC"],
  [{ job: ["dateless"], day: [TODAY] }, '--day: the export "dateless" has no "window", so it can\'t ask for a day'],
])("the selection %j is refused", (options, message) => {
  expect(() => chooseJobs(CONFIG, options, TODAY)).toThrow(expect.objectContaining({ code: "config", message }));
});

const TAGS = { dimension: "tags", atMost: 20 } as const;

test("a value of a configured fan-out may be chosen before it is known", () => {
  const exports = CONFIG.exports.map((job) => ({ ...job, fanOuts: [TAGS] }));
  const choose = (name: string) => chooseJobs({ ...CONFIG, exports }, { filter: [name] }, TODAY).jobs;
  for (const name of ["tags=prod", "tags=*"]) expect(choose(name)).toHaveLength(exports.length);
  for (const name of ["method=sync", "prod", "x tags="]) expect(() => choose(name)).toThrow("is not configured");
});

test("a value of a fan-out that no project has is refused once the values are known", () => {
  const exports = CONFIG.exports.map((job) => ({ ...job, fanOuts: [TAGS], seen: new Map() }));
  expect(() => chooseJobs({ ...CONFIG, exports }, { filter: ["tags=prod"] }, TODAY)).toThrow("no export has this");
});

test("if no export is configured, the error says where to add one", () => {
  const choose = () => chooseJobs({ ...CONFIG, exports: [] }, {}, TODAY);
  expect(choose).toThrow('there is no export to run: add one under "exports"');
});

test.each<[string, PeriodOptions, string, string]>([
  ["the last 28 complete days", {}, "2026-02-18", "2026-03-17"],
  ["28 days up to --to", { to: "2026-01-30" }, "2026-01-03", "2026-01-30"],
  ["the days from --from to yesterday", { from: "2026-03-10" }, "2026-03-10", "2026-03-17"],
  ["one day", { from: "2026-03-10", to: "2026-03-10" }, "2026-03-10", "2026-03-10"],
  ["today, which is not over", { from: TODAY, to: TODAY }, TODAY, TODAY],
  ["a leap year", { from: "2024-01-01", to: "2024-12-31" }, "2024-01-01", "2024-12-31"],
])("a report can cover %s", (_, options, start, end) => {
  expect(choosePeriod(options, TODAY)).toEqual({ start, end });
});

test("a period that is refused names the option to change", () => {
  expect(() => choosePeriod({ to: "2026-03-19" }, TODAY)).toThrow("--to: expected 2026-03-18 or before");
  expect(() => choosePeriod({ from: "2024-01-01", to: "2026-01-01" }, TODAY)).toThrow(/^--from: .*at most 366 days/);
});
