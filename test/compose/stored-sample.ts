// A database in which the same usage is stored under every grouping and under two filters, with gaps, failures and changes.

import { randomUUID } from "node:crypto";
import type { Database } from "../../src/db/connection/database.ts";
import { endProjects, finishRun, startRun } from "../../src/db/jobs/runs.ts";
import { storeListedKeys } from "../../src/db/project-facts.ts";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import { markDue, registerSeries, seriesIdOf } from "../../src/db/usage/stored-series.ts";
import type { SnapshotRow } from "../../src/usage/answer-rows.ts";
import type { ConfiguredSeries } from "../../src/usage/plan.ts";
import type { Filter, Grouping, Project } from "../../src/usage/series.ts";
import { newIntent, newKey, newRotation } from "../db/keys/written-ledger.ts";
import { billed } from "../db/stored-billing.ts";
import { configured, daysBack, type Numbers, newProject, rowOf, rowsOn, store, totalRow } from "../db/stored-usage.ts";

/** The usage of each project on each day, the same in each unfiltered series. The hours are binary fractions, which add up exactly. */
export const DAY = { requests: 30, hours: 1.5 };
/** The part of the usage that each filter lets through. */
export const FILTERED_DAY = { requests: 8, hours: 0.5 };
export const DAYS_STORED = 2;

/** Both filters let the same part of the usage through. */
const FILTERS: readonly Filter[] = [
  { name: `narrow: "it's" <b>`, features: { diarize: "true" }, dimensions: {} },
  { name: "also narrow", features: { punctuate: "true" }, dimensions: {} },
];
const GROUPINGS: readonly Grouping[] = ["none", "accessor", "endpoint", "model", "tags"];

export type StoredSample = {
  readonly projects: readonly Project[];
  /** One of the projects: the service sends its requests, but no hours. */
  readonly silent: Project;
  readonly series: readonly ConfiguredSeries[];
  readonly from: Date;
};

type Groups = readonly (readonly [value: unknown, numbers: Numbers])[];

export async function storeSample(db: Database): Promise<StoredSample> {
  const projects = [{ ...newProject(), name: `O'Brien "<b>" $1` }, newProject()];
  const silent = newProject();
  for (const project of projects) await storeKeys(db, project);
  const all = [...projects, silent].flatMap((project) => [
    ...GROUPINGS.map((grouping) => configured(project, grouping)),
    ...FILTERS.flatMap((filter) =>
      (["none", "model"] as const).map((grouping) => configured(project, grouping, { filter })),
    ),
  ]);
  const ids = await registerSeries(db, all);
  const back = await daysBack(db);
  for (const { series } of all) {
    const { project, grouping } = series;
    const isFiltered = FILTERS.includes(series.filter);
    const groups = isFiltered ? (FILTERED[grouping] ?? []) : groupsOf(project, grouping);
    const rows = groups.map(([value, numbers]) =>
      rowFor(grouping, value, project === silent ? mute(numbers) : numbers),
    );
    const seriesId = seriesIdOf(ids, series);
    await markDue(db, [seriesId], { first: back(4), oldest: { start: back(4), end: back(1) }, through: back(1) });
    await recordFailure(db, {
      seriesId,
      days: [back(3)],
      fetchNo: await nextFetchNo(db),
      reason: "the service is away",
    });
    // The first group is only in the second answer, as late usage is.
    for (const part of [rows.slice(1), rows]) {
      await store(db, seriesId, [rowsOn(back(2), part), rowsOn(back(1), part)], { grouping });
    }
    if (grouping === "endpoint") await store(db, seriesId, [rowsOn(back(1), [])], { grouping });
  }
  await storeRuns(db);
  return { projects: [...projects, silent], silent, series: all, from: new Date(`${back(6)}T00:00:00Z`) };
}

/**
 * Adds billing by the groupings and filter of usage, so that only the source tells their series apart, on days of its own: two are
 * missing, one failed, and one was restated.
 */
export async function storeBilling(db: Database, { projects, series: usage }: StoredSample): Promise<void> {
  const billing = projects.map((project) => configured(project, "none", { source: "billing" }));
  const ids = await registerSeries(db, [...usage, ...billing]);
  const back = await daysBack(db);
  for (const { series } of billing) {
    const seriesId = seriesIdOf(ids, series);
    await markDue(db, [seriesId], { first: back(6), oldest: { start: back(6), end: back(1) }, through: back(1) });
    const failure = { seriesId, days: [back(2)], fetchNo: await nextFetchNo(db), reason: "may not read billing" };
    await recordFailure(db, failure);
    for (const dollars of ["1.25", "1.5"]) {
      await store(db, seriesId, [billed(back(1), "none", [[dollars]])], { grouping: "none" });
    }
    await store(db, seriesId, [billed(back(3), "none", [["1"]]), billed(back(4), "none", [["1"]])], {
      grouping: "none",
    });
  }
}

function mute({ requests = "0" }: Numbers): Numbers {
  return { requests };
}

function rowFor(grouping: Grouping, value: unknown, numbers: Numbers): SnapshotRow {
  return grouping === "none" ? totalRow(numbers) : rowOf(value, numbers, null, grouping);
}

/** There are more models than a chart has colours, values that are missing, and tokens of models that do not add up to the total. */
function groupsOf(project: Project, grouping: Grouping): Groups {
  const models = Array.from({ length: 12 }, (_, i) => `model ${i}`);
  const [first, second] = keysOf(project);
  const groups: Readonly<Partial<Record<Grouping, Groups>>> = {
    none: [[undefined, { requests: "30", hours: "1.5", tokens_in: "100" }]],
    accessor: [
      [first, { requests: "10", hours: "0.5" }],
      [second, { requests: "15", hours: "0.75" }],
      ["made in the console", { requests: "3", hours: "0.25" }],
      [null, { requests: "2" }],
    ],
    endpoint: [
      ["listen", { requests: "20", hours: "1.5" }],
      ["speak", { requests: "10" }],
    ],
    model: models.map((model, i) => [model, { requests: i < 2 ? "5" : "2", hours: "0.125", tokens_in: "5" }]),
    tags: [
      [["prod", "<script>"], { requests: "25", hours: "1" }],
      [null, { requests: "5", hours: "0.5" }],
    ],
  };
  return groups[grouping] ?? [];
}

const FILTERED: Readonly<Partial<Record<Grouping, Groups>>> = {
  none: [[undefined, { requests: "8", hours: "0.5" }]],
  model: [
    ["model 0", { requests: "5", hours: "0.25" }],
    ["model 1", { requests: "3", hours: "0.25" }],
  ],
};

function keysOf({ id }: Project): readonly [string, string] {
  return [newKey(`ue-first-${id}`).apiKeyId, newKey(`ue-second-${id}`).apiKeyId];
}

/** A rotation that has replaced a key, and a key whose creation was not answered. */
async function storeKeys(db: Database, project: Project): Promise<void> {
  const { key } = await newRotation(db, { project });
  await key(`ue-first-${project.id}`, "active");
  await key(`ue-second-${project.id}`, "active");
  await key(newIntent(), "intent");
  await storeListedKeys(db, project.id, [{ apiKeyId: keysOf(project)[0], comment: "the first", scopes: ["member"] }]);
}

async function storeRuns(db: Database): Promise<void> {
  const counts = {
    requests: 7,
    planned: 14,
    complete: 12,
    suspect: 1,
    failed: 1,
    undated: 0,
    stale: 0,
    rowsChanged: 20,
  };
  for (const status of ["ok", "failed"] as const) {
    const runId = randomUUID();
    const run = { runId, kind: "export", job: "nightly", trigger: "manual" } as const;
    await startRun(db, run, [{ projectId: "p1", planned: counts.planned }]);
    await endProjects(db, [{ runId, projectId: "p1", counts }]);
    await finishRun(db, runId, status, status === "ok" ? undefined : "<b>refused</b>");
  }
}
