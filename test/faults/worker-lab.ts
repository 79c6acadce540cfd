// The lab of workers: six series of two days, with nothing stored yet, and a scheduled time that is far away.

import { addDays, dayOf } from "../../src/emulator/days.ts";
import { farSchedule } from "../cli/workers.ts";
import { sliceName } from "./case-evidence.ts";
import { type Lab, type LabOptions, openLab, PROJECT_ID } from "./lab.ts";

const GROUPINGS = ["none", "endpoint", "tags"];
export const FILTERS = { all: "", listen: "endpoint=listen" };
export const CAPS = { concurrent: 2, attempts: 10 };
const DRAIN_SECONDS = 8;

const today = dayOf(new Date());
const days = [addDays(today, -2), addDays(today, -1)];

const OPTIONS: LabOptions = {
  filters: FILTERS,
  due: Object.values(FILTERS).flatMap((conditions) =>
    GROUPINGS.flatMap((grouping) => days.map((day) => sliceName(`${grouping} / ${conditions}`, day))),
  ),
  before: [],
  config: (baseUrl) => ({
    service: {
      baseUrl,
      dialect: "interface",
      requestsPerSecond: 20,
      maxConcurrent: CAPS.concurrent,
      timeoutSeconds: 2,
    },
    projects: [{ id: PROJECT_ID, name: "production", key: { env: "USAGE_EXPORT_KEY" } }],
    exports: [
      {
        name: "nightly",
        schedule: farSchedule(),
        projects: ["production"],
        window: { days: days.length },
        groupings: GROUPINGS,
        checkFeatures: "off",
        filters: [{ name: "all" }, { name: "listen", dimensions: { endpoint: "listen" } }],
      },
    ],
    monitor: { port: 0 },
    worker: { drainSeconds: DRAIN_SECONDS },
  }),
};

export function openWorkerLab(): Promise<Lab> {
  return openLab(OPTIONS);
}
