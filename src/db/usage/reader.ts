// Reads what a worker needs to begin with a project. Projects that are claimed together are read by common statements.

import { batched } from "../../async.ts";
import type { Database } from "../connection/database.ts";
import { type ProjectJob, readOpenProjects } from "../jobs/runs.ts";
import { dueSlices, type SeriesOfRun, settledSlices } from "./due-slices.ts";

export type Reader = ReturnType<typeof openReader>;

const PROJECTS_MAX = 100;

export function openReader(db: Database) {
  const limits = { weightMax: PROJECTS_MAX };
  return {
    openProject: batched((projects: readonly ProjectJob[]) => readOpenProjects(db, projects), limits),
    settledSlices: batched((series: readonly SeriesOfRun[]) => settledSlices(db, series), limits),
    dueSlices: batched(async (series: readonly (readonly number[])[]) => {
      const bySeries = Map.groupBy(await dueSlices(db, series.flat()), ({ seriesId }) => seriesId);
      return series.map((ids) => ids.flatMap((id) => bySeries.get(id) ?? []));
    }, limits),
  };
}
