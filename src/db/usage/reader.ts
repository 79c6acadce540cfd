// Reads what a worker needs to start on a project. Projects that are claimed together are read by common statements.

import { batched } from "../../async.ts";
import type { Database } from "../connection/database.ts";
import { type ProjectJob, readOpenProjects } from "../jobs/runs.ts";
import { dueSlices, type SeriesOfRun, settledSlices } from "./due-slices.ts";

export type Reader = ReturnType<typeof openReader>;

const LIMITS = { weightMax: 100 };

export function openReader(db: Database) {
  return {
    openProject: batched((projects: readonly ProjectJob[]) => readOpenProjects(db, projects), LIMITS),
    settledSlices: batched((series: readonly SeriesOfRun[]) => settledSlices(db, series), LIMITS),
    dueSlices: batched(async (series: readonly (readonly number[])[]) => {
      const bySeries = Map.groupBy(await dueSlices(db, series.flat()), ({ seriesId }) => seriesId);
      return series.map((ids) => ids.flatMap((id) => bySeries.get(id) ?? []));
    }, LIMITS),
  };
}
