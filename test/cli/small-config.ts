// A configuration with one project, one job and one series for an emulator. A test passes the fields that differ.

import { PROJECT_ID } from "./program-context.ts";

type Fields = Readonly<Record<string, unknown>>;

export const PRODUCTION = { id: PROJECT_ID, name: "production", key: { env: "USAGE_EXPORT_KEY" } };

/** Reads the total of the last two days. */
const JOB = {
  name: "nightly",
  schedule: "15 2 * * *",
  projects: ["production"],
  window: { days: 2 },
  groupings: ["none"],
};

/** `exports` has only those fields of a job that differ from JOB; undefined leaves a field out. */
export function smallConfig(
  baseUrl: string,
  part: { readonly service?: Fields; readonly projects?: readonly Fields[]; readonly exports?: readonly Fields[] } = {},
): Fields {
  return {
    // Fast, because the emulator needs no protection.
    service: { baseUrl, dialect: "interface", requestsPerSecond: 100, ...part.service },
    projects: part.projects ?? [PRODUCTION],
    exports: (part.exports ?? [{}]).map((job) => ({ ...JOB, ...job })),
  };
}
