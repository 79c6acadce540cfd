// How the service understands requests: which dialect it speaks, and whether it groups at all. If the configuration says "auto",
// a probe finds the dialect, and all runs and processes use what it found; an answer that does not fit causes a new probe.

import type { App } from "../app.ts";
import { memoizeAsync } from "../async.ts";
import type { Database } from "../db/connection/database.ts";
import { storeDialect, storedDialect } from "../db/project-facts.ts";
import type { Service } from "../service/service.ts";
import { dependsOnDialect, hasModel, hasRows, probeDialect } from "../service/usage.ts";
import { addDays, dayOf, type Window } from "../usage/days.ts";
import { DIMENSIONS_OF, type Dialect, type Dimension, dimension } from "../usage/dimensions.ts";
import { badAnswer } from "../usage/json-value.ts";
import { groupingEvidence, nullDimensions } from "../usage/normalise.ts";
import { REQUEST_DAYS_MAX, type UsageRequest } from "../usage/plan.ts";
import { dimensionsOf, type Project } from "../usage/series.ts";
import type { KeyRing } from "./key-ring.ts";

/** Used while no usage shows the dialect. The public service speaks this one today. */
export const DEFAULT_DIALECT: Dialect = "2026";

/** Pause after a probe. Without it each of the many requests of a run would probe while no usage shows the dialect. */
const PROBE_PAUSE_MS = 60_000;

type DialectDeps = {
  readonly app: App;
  /** Where what was found is kept for other processes; undefined without a database. */
  readonly db: Database | undefined;
  readonly service: Service;
  readonly keys: Pick<KeyRing, "use">;
};

export type Dialects = ReturnType<typeof openDialects>;

export function openDialects({ app, db, service, keys }: DialectDeps) {
  let found: Dialect | undefined;
  const probes = memoizeAsync<Dialect | undefined>(() => PROBE_PAUSE_MS);
  const warned = new Set<string>();

  const probe = (project: Project, window: Window | undefined) =>
    probes(JSON.stringify([project.id, window]), () => probeNow(project, window));

  async function probeNow(project: Project, window: Window | undefined): Promise<Dialect | undefined> {
    const { signal } = app;
    const dialect = await keys.use(project, (key) => probeDialect({ service, project, window, key, signal }));
    if (dialect === undefined || dialect === found) return dialect;
    app.log.debug({ project: project.name, dialect, before: found }, "found out which dialect the service speaks");
    found = dialect;
    if (db) await storeDialect(db, service.baseUrl, dialect);
    return dialect;
  }

  function warnOnce(project: Project): void {
    if (warned.has(project.id)) return;
    warned.add(project.id);
    const fields = { project: project.name, dialect: DEFAULT_DIALECT };
    app.log.warn(fields, "no usage shows which dialect the service speaks: the default is used until some does");
  }

  return {
    async forRequest({ series, window }: UsageRequest): Promise<Dialect> {
      if (service.dialect !== "auto") return service.dialect;
      // A probe reads usage, which a key for billing need not be allowed to.
      if (series.source === "billing" || !dependsOnDialect(series)) return DEFAULT_DIALECT;
      const stored = found ?? (db && (await storedDialect(db, service.baseUrl)));
      // While the database was read, a probe for another request may have found the dialect.
      found ??= stored;
      if (found === undefined && window) await probe(series.project, recentDays());
      if (found === undefined) await probe(series.project, window);
      if (found === undefined) warnOnce(series.project);
      return found ?? DEFAULT_DIALECT;
    },

    /** The other dialect, if a probe finds that the service speaks it. Called if an answer in dialect `used` does not fit or is in doubt. */
    async alternative({ series, window }: UsageRequest, used: Dialect): Promise<Dialect | undefined> {
      if (service.dialect !== "auto" || !dependsOnDialect(series)) return undefined;
      if (series.source === "billing") return used === "2026" ? "interface" : "2026";
      await probe(series.project, window);
      return found === used ? undefined : found;
    },

    /** False if the request groups by model and the answer has rows, but none with a model: the service did not understand the grouping. */
    fits: ({ series }: UsageRequest, answer: unknown) =>
      series.grouping !== "model" || !hasRows(answer) || hasModel(answer),

    /**
     * Probes even if the dialect is known. With `windowed` the requests have a start and an end, as those of an export with a window.
     * Undefined if the project has no usage that shows the dialect.
     */
    probe: async (project: Project, windowed: boolean): Promise<Dialect | undefined> =>
      service.dialect === "auto" ? probeNow(project, windowed ? recentDays() : undefined) : service.dialect,
  };
}

function recentDays(): Window {
  const yesterday = addDays(dayOf(new Date()), -1);
  return { start: addDays(yesterday, 1 - REQUEST_DAYS_MAX), end: yesterday };
}

// If no row of an answer has a value of the requested dimension, checks whether the service groups at all. A service that ignores
// `grouping` answers with the total and null in every dimension, which looks like usage without tags.

const OTHER_GROUPINGS_MAX = 2;

/**
 * How long the result of one check holds for all requests of the project. The time is short if the service ignores groupings, because
 * that may be fixed soon.
 */
const GROUPS_MS = 60 * 60_000;
const IGNORES_MS = 60_000;

/** Requests the same usage by other dimensions. */
type Ask = (other: UsageRequest) => Promise<unknown>;

export type GroupingCheck = ReturnType<typeof openGroupingCheck>;

export function openGroupingCheck() {
  const known = memoizeAsync<boolean>((groups) => (groups ? GROUPS_MS : IGNORES_MS));
  return {
    /** Throws `bad_answer` if every row of the answer has null as its group, and what `ask` gets has only such rows, too. */
    async require(request: UsageRequest, answer: unknown, ask: Ask): Promise<void> {
      const missing = nullDimensions(request, answer);
      const { source, grouping, project } = request.series;
      const dimensions = dimensionsOf(grouping);
      if (missing.length === 0) return;
      if (missing.length < dimensions.length) return requireNoValueAlone(missing, request, ask);
      const others = DIMENSIONS_OF[source]
        .filter((one) => dimension(one).isAlwaysFilled?.includes(source) && !dimensions.includes(one))
        .slice(0, OTHER_GROUPINGS_MAX);
      if (await known(JSON.stringify([source, project.id]), () => hasValueBy(others, request, ask))) return;
      throw badAnswer(
        `no row has a value of "${grouping}", and none has one by ${others.join(" or ")} either: the service seems to answer the total whatever "grouping" asks for; export "none" alone, or ask the vendor`,
      );
    },
  };
}

/** A service that groups by only one of several dimensions sends null for the others. */
async function requireNoValueAlone(missing: readonly Dimension[], request: UsageRequest, ask: Ask): Promise<void> {
  for (const dimension of missing) {
    if (!(await hasValueBy([dimension], request, ask))) continue;
    throw badAnswer(
      `no row has a value of "${dimension}", though the same amounts have some when they are grouped by it alone: the service seems not to group by ${request.series.grouping} at once; export each dimension by itself, or ask the vendor`,
    );
  }
}

async function hasValueBy(groupings: readonly Dimension[], request: UsageRequest, ask: Ask): Promise<boolean> {
  for (const grouping of groupings) {
    const other = { ...request, series: { ...request.series, grouping } };
    if (groupingEvidence(grouping, await ask(other)) === "values") return true;
  }
  return false;
}
