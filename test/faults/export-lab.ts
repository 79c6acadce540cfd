// The lab of exports: four series of two days, of which one export before stored one, and three of the other days' numbers.

import { addDays, dayOf } from "../../src/emulator/days.ts";
import { sliceName } from "./case-evidence.ts";
import { type Lab, type LabOptions, openLab, PROJECT_ID } from "./lab.ts";

const GROUPINGS = ["none", "tags"];
const FILTERS = { all: "", diarized: "diarize=true" };

const CONCURRENT_MAX = 3;
/** How often one request is tried by one run. */
const ATTEMPTS_MAX = 5;
export const CAPS = { concurrent: CONCURRENT_MAX, attempts: ATTEMPTS_MAX };

const today = dayOf(new Date());
const DAYS = [addDays(today, -2), addDays(today, -1)];

const OPTIONS: LabOptions = {
  filters: FILTERS,
  due: Object.values(FILTERS).flatMap((conditions) =>
    GROUPINGS.flatMap((grouping) => DAYS.map((day) => sliceName(`${grouping} / ${conditions}`, day))),
  ),
  // What is there before a case: one series whole, one with one of its days, and two not at all.
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
        // What is asked beside the series would be points of its own.
        checkFeatures: "off",
        filters: [{ name: "all" }, { name: "diarized", features: { diarize: true } }],
      },
    ],
  }),
};

export function openExportLab(): Promise<Lab> {
  return openLab(OPTIONS);
}
