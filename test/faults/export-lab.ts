// The lab of exports: four series of two days. Before the cases one series is stored whole, one with one of its days, two not at all.

import { addDays, dayOf } from "../../src/emulator/days.ts";
import { sliceName } from "./case-evidence.ts";
import { type Lab, type LabOptions, openLab, PROJECT_ID } from "./lab.ts";

const GROUPINGS = ["none", "tags"];
const FILTERS = { all: "", diarized: "diarize=true" };

const CONCURRENT_MAX = 3;
/** How often one run tries a request at most. */
const ATTEMPTS_MAX = 5;
export const CAPS = { concurrent: CONCURRENT_MAX, attempts: ATTEMPTS_MAX };

const today = dayOf(new Date());
const DAYS = [addDays(today, -2), addDays(today, -1)];

const OPTIONS: LabOptions = {
  filters: FILTERS,
  due: Object.values(FILTERS).flatMap((conditions) =>
    GROUPINGS.flatMap((grouping) => DAYS.map((day) => sliceName(`${grouping} / ${conditions}`, day))),
  ),
  before: [
    ["export", "--grouping", "none", "--filter", "all"],
    ["export", "--grouping", "tags", "--filter", "all", "--day", DAYS[0] ?? ""],
  ],
  config: (baseUrl) => ({
    service: {
      baseUrl,
      dialect: "interface",
      requestsPerSecond: 100,
      maxConcurrent: CONCURRENT_MAX,
      timeoutSeconds: 2,
    },
    projects: [{ id: PROJECT_ID, name: "production", key: { env: "USAGE_EXPORT_KEY" } }],
    exports: [
      {
        name: "nightly",
        schedule: "15 2 * * *",
        projects: ["production"],
        window: { days: DAYS.length },
        groupings: GROUPINGS,
        // Other requests than those of the series would add points to the sweep.
        checkFeatures: "off",
        filters: [{ name: "all" }, { name: "diarized", features: { diarize: true } }],
      },
    ],
  }),
};

export function openExportLab(): Promise<Lab> {
  return openLab(OPTIONS);
}
