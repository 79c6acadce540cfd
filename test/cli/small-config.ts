// A configuration of one project, one job and one series, on an emulator, with what a test changes in it.

import { PROJECT_ID } from "./program-context.ts";

type Fields = Readonly<Record<string, unknown>>;

export const PRODUCTION = { id: PROJECT_ID, name: "production", key: { env: "USAGE_EXPORT_KEY" } };

/** The total of the last two days. */
const JOB = {
  name: "nightly",
  schedule: "15 2 * * *",
  projects: ["production"],
  window: { days: 2 },
  groupings: ["none"],
};

/** Of a job only what differs is given; a field that is undefined is left out. */
export function smallConfig(
  baseUrl: string,
  part: { readonly service?: Fields; readonly projects?: readonly Fields[]; readonly exports?: readonly Fields[] } = {},
): Fields {
  return {
    // As fast as the program may: a test has no service to spare.
    service: { baseUrl, dialect: "interface", requestsPerSecond: 100, ...part.service },
    projects: part.projects ?? [PRODUCTION],
    exports: (part.exports ?? [{}]).map((job) => ({ ...JOB, ...job })),
  };
}
