// An export of some projects that reads totals of the last week each night, except for the parts that a test sets.

import type { ExportJob } from "../../src/usage/plan.ts";
import { ALL_USAGE } from "../../src/usage/series.ts";

export function exportJob({
  projects = 1,
  ...part
}: Partial<Omit<ExportJob, "projects">> & { readonly projects?: number } = {}): ExportJob {
  return {
    ...{ name: "nightly", source: "usage", schedule: "15 2 * * *", timezone: "UTC", jitterSeconds: 0, overlap: "skip" },
    ...{ groupings: ["none"], filters: [ALL_USAGE], window: { days: 7, today: false } },
    ...{ emptyGuard: "confirm", cliffGuard: "confirm", checkFeatures: "error", undated: "snapshot" },
    ...part,
    projects: Array.from({ length: projects }, (_, i) => ({ id: `p${i}`, name: `customer-${i}` })),
  };
}
