import fc from "fast-check";
import { expect, test } from "vitest";
import { addDays, type Day, daysOf, type Window } from "../../src/usage/days.ts";
import {
  type BackfillMode,
  countStatuses,
  type ExportJob,
  jobsWithSeries,
  type KnownSlices,
  planBackfill,
} from "../../src/usage/export-plan.ts";
import type { SliceStatus } from "../../src/usage/slice-decision.ts";
import { PROJECT, sampleJob } from "./sample-request.ts";

const TODAY = "2026-03-18";
const WEEK: Window = { start: "2026-03-11", end: "2026-03-17" };

/** The known slices of the project, by grouping. */
function known(slices: Readonly<Record<string, Readonly<Record<Day, SliceStatus>>>>): KnownSlices {
  return new Map(
    Object.entries(slices).map(([grouping, days]) => [JSON.stringify(["usage", PROJECT.id, grouping, "{}"]), days]),
  );
}

/** Each request as "job: grouping start to end". */
function planned(
  jobs: readonly ExportJob[],
  range: Window,
  only: BackfillMode = "missing",
  slices: KnownSlices = new Map(),
): string[] {
  return planBackfill(jobsWithSeries(jobs, {}), range, only, slices, TODAY).flatMap(({ job, plan }) =>
    plan.requests.map(({ series, window }) => `${job.name}: ${series.grouping} ${window?.start} to ${window?.end}`),
  );
}

test("the newest days of all series come first, in requests of at most 31 days", () => {
  const job = sampleJob({ groupings: ["none", "model"] });
  expect(planned([job], { start: "2026-02-01", end: "2026-03-17" })).toEqual([
    "nightly: none 2026-02-15 to 2026-03-17",
    "nightly: model 2026-02-15 to 2026-03-17",
    "nightly: none 2026-02-01 to 2026-02-14",
    "nightly: model 2026-02-01 to 2026-02-14",
  ]);
});

test("a series that two jobs read is read once, by the first", () => {
  const jobs = [
    sampleJob({ groupings: ["none", "model"] }),
    sampleJob({ name: "weekly", groupings: ["model", "tags"] }),
    sampleJob({ name: "same", groupings: ["tags"] }),
  ];
  const day = { start: "2026-03-17", end: "2026-03-17" };
  expect(planned(jobs, day)).toEqual([
    "nightly: none 2026-03-17 to 2026-03-17",
    "nightly: model 2026-03-17 to 2026-03-17",
    "weekly: tags 2026-03-17 to 2026-03-17",
  ]);
});

const WEEK_DUE = { first: WEEK.start, oldestWindow: WEEK, through: WEEK.end };

test.each<[BackfillMode, string, typeof WEEK_DUE | undefined]>([
  ["missing", "its whole range", WEEK_DUE],
  ["all", "its whole range", WEEK_DUE],
  ["failed", "nothing", undefined],
])("a backfill of %s days makes %s due", (only, _, due) => {
  const slices = known({ none: { [WEEK.end]: only === "failed" ? "failed" : "complete" } });
  const [first] = planBackfill(jobsWithSeries([sampleJob()], {}), WEEK, only, slices, TODAY);
  expect(first?.plan).toMatchObject({ runDay: TODAY, due });
});

test("a job without a day to read is left out of the plan", () => {
  const jobs = jobsWithSeries([sampleJob(), sampleJob({ name: "models", groupings: ["model"] })], {});
  const complete = known({ none: Object.fromEntries(daysOf(WEEK).map((day) => [day, "complete"])) });
  expect(planBackfill(jobs, WEEK, "missing", complete, TODAY).map(({ job }) => job.name)).toEqual(["models"]);
  expect(countStatuses(jobs, WEEK, complete)).toEqual({ complete: 7, suspect: 0, failed: 0, missing: 7 });
});

const aStatus = fc.constantFrom<(SliceStatus | undefined)[]>("complete", "suspect", "failed", undefined);

test("for any stored statuses, each mode reads exactly its days, each once", () => {
  fc.assert(
    fc.property(fc.array(aStatus, { minLength: 1, maxLength: 100 }), (statuses) => {
      const range = { start: addDays(TODAY, -statuses.length), end: addDays(TODAY, -1) };
      const entries = daysOf(range).map((day, index) => [day, statuses[index]] as const);
      const slices = known({
        none: Object.fromEntries(entries.flatMap(([day, status]) => (status ? [[day, status]] : []))),
      });
      const jobs = jobsWithSeries([sampleJob()], {});
      const daysRead = (only: BackfillMode) =>
        planBackfill(jobs, range, only, slices, TODAY)
          .flatMap(({ plan }) => plan.requests)
          .toReversed()
          .flatMap(({ window }) => (window ? daysOf(window) : []));
      const daysThatAre = (wanted: SliceStatus | undefined) =>
        entries.filter(([, status]) => status === wanted).map(([day]) => day);

      expect(daysRead("missing")).toEqual(daysThatAre(undefined));
      expect(daysRead("failed")).toEqual(daysThatAre("failed"));
      expect(daysRead("all")).toEqual(daysOf(range));
      expect(countStatuses(jobs, range, slices)).toEqual({
        complete: daysThatAre("complete").length,
        suspect: daysThatAre("suspect").length,
        failed: daysThatAre("failed").length,
        missing: daysThatAre(undefined).length,
      });
    }),
  );
});
