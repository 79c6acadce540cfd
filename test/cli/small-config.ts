// A configuration with one project, one job and one series. A test passes the fields that differ.

export const PROJECT_ID = "project-1";

type Fields = Readonly<Record<string, unknown>>;
/** `exports` has only those fields of a job that differ; undefined leaves a field out. */
export type ConfigPart = Fields & { readonly service?: Fields; readonly exports?: readonly Fields[] };

export const PRODUCTION = { id: PROJECT_ID, name: "production", key: { env: "USAGE_EXPORT_KEY" } };

/** Reads the total of the last two days. */
const JOB = {
  name: "nightly",
  schedule: "15 2 * * *",
  projects: ["production"],
  window: { days: 2 },
  groupings: ["none"],
};

export function smallConfig(baseUrl: string, { service, exports = [{}], ...rest }: ConfigPart = {}): Fields {
  return {
    // A high rate, because the emulator needs no protection.
    service: { baseUrl, dialect: "interface", requestsPerSecond: 100, ...service },
    projects: [PRODUCTION],
    exports: exports.map((job) => ({ ...JOB, ...job })),
    ...rest,
  };
}

/** The same for workers: no job is due while the test runs, and the monitor has a free port. */
export function workerConfig(baseUrl: string, { exports = [{}], ...rest }: ConfigPart = {}): Fields {
  const jobs = exports.map((job) => ({ schedule: farSchedule(), ...job }));
  return smallConfig(baseUrl, { monitor: { port: 0 }, ...rest, exports: jobs });
}

/** A schedule whose last run was due about twelve hours ago, and whose next one is due in about twelve hours. */
export function farSchedule(now = new Date()): string {
  return `30 ${(now.getUTCHours() + 12) % 24} * * *`;
}

/** Filters that each select a different accessor, for a test with many series. */
export function manyFilters(count: number): readonly Fields[] {
  return Array.from({ length: count }, (_, i) => ({
    name: `accessor ${i}`,
    dimensions: { accessor: `accessor-${i}` },
  }));
}
