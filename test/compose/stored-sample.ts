// A database in which the same usage is stored under every grouping and under two filters, with gaps, failures and changes.

import { randomUUID } from "node:crypto";
import type { Database } from "../../src/db/connection/database.ts";
import { endProjects, finishRun, startRun } from "../../src/db/jobs/runs.ts";
import { storeListedKeys } from "../../src/db/project-facts.ts";
import { NO_COUNTS } from "../../src/usage/counts.ts";
import type { ConfiguredSeries } from "../../src/usage/export-plan.ts";
import type { Filter, Grouping, Project } from "../../src/usage/series.ts";
import { newIntent, usedKeys } from "../db/keys/written-ledger.ts";
import { billed } from "../db/stored-billing.ts";
import { configured, daysBack, failOn, type Numbers, newProject, register, setDue, store } from "../db/stored-usage.ts";

/** The usage of a project on each day, in each unfiltered series. The hours are binary fractions, so that doubles add up exactly. */
export const DAY = { requests: 30, hours: 1.5 };
/** The part of the usage that each filter lets through. */
export const FILTERED_DAY = { requests: 8, hours: 0.5 };
export const DAYS_STORED = 2;

/** Both filters let the same part of the usage through. */
const FILTERS: readonly Filter[] = [
  { name: `narrow: "it's" <b>`, features: { diarize: "true" }, dimensions: {} },
  { name: "also narrow", features: { punctuate: "true" }, dimensions: {} },
];

export type StoredSample = {
  readonly projects: readonly Project[];
  /** One of the projects. The service sends its requests, but no hours. */
  readonly silent: Project;
  readonly series: readonly ConfiguredSeries[];
  readonly from: Date;
};

type Groups = readonly (readonly [value: unknown, numbers: Numbers])[];

export async function storeSample(db: Database): Promise<StoredSample> {
  const named = [{ ...newProject(), name: `O'Brien "<b>" $1` }, newProject()];
  const silent = newProject();
  const projects = [...named, silent];
  const keys = new Map([[silent, ["id-of-first", "id-of-second"]]]);
  for (const project of named) keys.set(project, await storeKeys(db, project));
  const series = projects.flatMap((project) => [
    ...GROUPINGS.map((grouping) => configured(project, grouping)),
    ...FILTERS.flatMap((filter) => FILTERED_BY.map((grouping) => configured(project, grouping, { filter }))),
  ]);
  const ids: readonly number[] = await register(db, ...series);
  const back = await daysBack(db);
  await setDue(db, ids, back(4), back(1));
  for (const [i, one] of series.entries()) {
    const { project, grouping, filter } = one.series;
    const seriesId = ids[i] ?? 0;
    await failOn(db, seriesId, [back(3)], { reason: "the service is away" });
    const all = FILTERS.includes(filter) ? FILTERED[grouping] : groupsOf(keys.get(project) ?? [])[grouping];
    const groups = (all ?? []).map(([value, numbers]): Groups[number] => [
      value,
      project === silent ? { requests: numbers.requests ?? "0" } : numbers,
    ]);
    // The first group is only in the second answer, as late usage is.
    for (const day of [groups.slice(1), groups]) await store(db, seriesId, { [back(2)]: day, [back(1)]: day });
    // An empty answer makes a stored day suspect.
    if (grouping === "endpoint") await store(db, seriesId, { [back(1)]: {} });
  }
  await storeRuns(db);
  return { projects, silent, series, from: new Date(`${back(6)}T00:00:00Z`) };
}

/** Adds the billed total of each project. Of its six due days two are missing, one failed, and one was restated. */
export async function storeBilling(db: Database, { projects, series }: StoredSample): Promise<void> {
  const billing = projects.map((project) => configured(project, "none", { source: "billing" }));
  const ids: readonly number[] = await register(db, ...series, ...billing);
  const back = await daysBack(db);
  for (const seriesId of ids.slice(series.length)) {
    await setDue(db, [seriesId], back(6), back(1));
    await failOn(db, seriesId, [back(2)], { reason: "may not read billing" });
    for (const [days, dollars] of [
      [[1], "1.25"],
      [[1], "1.5"],
      [[3, 4], "1"],
    ] as const) {
      const slices = days.map((day) => billed(back(day), "none", [[dollars]]));
      await store(db, seriesId, slices);
    }
  }
}

/** There are more models than a chart has colours, groups without a value, and tokens of models that do not add up to the total. */
function groupsOf([first, second]: readonly string[]): Readonly<Partial<Record<Grouping, Groups>>> {
  const models = Array.from({ length: 12 }, (_, i) => `model ${i}`);
  return {
    none: [["", { requests: "30", hours: "1.5", tokens_in: "100" }]],
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
}
const GROUPINGS: readonly Grouping[] = ["none", "accessor", "endpoint", "model", "tags"];

const FILTERED: Readonly<Partial<Record<Grouping, Groups>>> = {
  none: [["", { requests: "8", hours: "0.5" }]],
  model: [
    ["model 0", { requests: "5", hours: "0.25" }],
    ["model 1", { requests: "3", hours: "0.25" }],
  ],
};
const FILTERED_BY: readonly Grouping[] = ["none", "model"];

/** Stores a rotation that has replaced a key, and a key whose creation was not answered. Returns the ids of the replaced and new key. */
async function storeKeys(db: Database, project: Project): Promise<string[]> {
  const { recordKey, keys } = await usedKeys(db, project);
  await recordKey(newIntent(), "intent");
  await storeListedKeys(db, project.id, [{ apiKeyId: keys[0] ?? "", comment: "the first", scopes: ["member"] }]);
  return keys;
}

async function storeRuns(db: Database): Promise<void> {
  const counts = { ...NO_COUNTS, requests: 7, planned: 14, complete: 12, suspect: 1, failed: 1, rowsChanged: 20 };
  for (const error of [undefined, "<b>refused</b>"]) {
    const runId = randomUUID();
    await startRun(db, { runId, kind: "export", job: "nightly", trigger: "manual" }, [
      { projectId: "p1", planned: 14 },
    ]);
    await endProjects(db, [{ runId, projectId: "p1", counts }]);
    await finishRun(db, runId, error ? "failed" : "ok", error);
  }
}
