// How the service understands requests: which dialect it speaks, and whether it groups at all. If the configuration says "auto",
// a probe finds the dialect, and all runs and processes use what it found; an answer that does not fit causes a new probe.

import { memoizeAsync } from "../async.ts";
import { storeDialect, storedDialect } from "../db/dialect.ts";
import { dependsOnDialect, hasModel, hasRows, probeDialect } from "../service/usage.ts";
import { addDays, dayOf, type Window } from "../usage/days.ts";
import { DIMENSIONS_OF, type Dialect, type Dimension, dimension } from "../usage/dimensions.ts";
import { badAnswer } from "../usage/json-value.ts";
import { groupingEvidence, nullDimensions } from "../usage/normalise.ts";
import { REQUEST_DAYS_MAX, type UsageRequest } from "../usage/plan.ts";
import { dimensionsOf, type Project } from "../usage/series.ts";
import type { Dialects, GroupingCheck, ServiceContext } from "./export-context.ts";

/** Used while no usage shows the dialect. The public service speaks this one today. */
export const DEFAULT_DIALECT: Dialect = "2026";

/** Pause after a probe. Without it each of the many requests of a run would probe while no usage shows the dialect. */
const PROBE_PAUSE_MS = 60_000;

export function openDialects({
  app,
  db,
  service,
  keys,
}: Pick<ServiceContext, "app" | "db" | "service" | "keys">): Dialects {
  let found: Dialect | undefined;
  const probes = memoizeAsync<Dialect | undefined>(() => PROBE_PAUSE_MS);
  const warned = new Set<string>();

  async function probe(project: Project, window: Window | undefined): Promise<void> {
    await probes(JSON.stringify([project.id, window]), () => probeNow(project, window));
  }

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
    async forRequest({ series, window }) {
      if (service.dialect !== "auto") return service.dialect;
      // A probe reads usage, which a key for billing need not be allowed to.
      if (series.source === "billing") return DEFAULT_DIALECT;
      if (!dependsOnDialect(series)) return DEFAULT_DIALECT;
      const stored = found ?? (db && (await storedDialect(db, service.baseUrl)));
      // While the database was read, a probe for another request may have found the dialect.
      found ??= stored;
      if (found === undefined && window) await probe(series.project, recentDays());
      if (found === undefined) await probe(series.project, window);
      if (found !== undefined) return found;
      warnOnce(series.project);
      return DEFAULT_DIALECT;
    },
    async alternative({ series, window }, used) {
      if (service.dialect !== "auto" || !dependsOnDialect(series)) return undefined;
      if (series.source === "billing") return used === "2026" ? "interface" : "2026";
      await probe(series.project, window);
      return found === used ? undefined : found;
    },
    fits: ({ series }, answer) => series.grouping !== "model" || !hasRows(answer) || hasModel(answer),
    async probe(project, windowed) {
      return service.dialect === "auto" ? probeNow(project, windowed ? recentDays() : undefined) : service.dialect;
    },
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

export function openGroupingCheck(): GroupingCheck {
  const known = memoizeAsync<boolean>((groups) => (groups ? GROUPS_MS : IGNORES_MS));
  return {
    async require(request, answer, ask) {
      const missing = nullDimensions(request, answer);
      const { source, grouping, project } = request.series;
      const dimensions = dimensionsOf(grouping);
      if (missing.length === 0) return;
      if (missing.length < dimensions.length) return requireNoValueAlone(missing, request, ask);
      const others = DIMENSIONS_OF[source]
        .filter((one) => dimension(one).isAlwaysFilled?.includes(source) && !dimensions.includes(one))
        .slice(0, OTHER_GROUPINGS_MAX);
      const isGrouping = await known(JSON.stringify([source, project.id]), () => hasValueBy(others, request, ask));
      if (isGrouping) return;
      throw badAnswer(
        `no row has a value of "${grouping}", and none has one by ${others.join(" or ")} either: the service seems to answer the total whatever "grouping" asks for; export "none" alone, or ask the vendor`,
      );
    },
  };
}

/** A service that groups by only one of several dimensions sends null for the others. */
async function requireNoValueAlone(
  missing: readonly Dimension[],
  request: UsageRequest,
  ask: (other: UsageRequest) => Promise<unknown>,
): Promise<void> {
  for (const dimension of missing) {
    if (!(await hasValueBy([dimension], request, ask))) continue;
    throw badAnswer(
      `no row has a value of "${dimension}", though the same amounts have some when they are grouped by it alone: the service seems not to group by ${request.series.grouping} at once; export each dimension by itself, or ask the vendor`,
    );
  }
}

async function hasValueBy(
  groupings: readonly Dimension[],
  request: UsageRequest,
  ask: (other: UsageRequest) => Promise<unknown>,
): Promise<boolean> {
  for (const grouping of groupings) {
    const other = { ...request, series: { ...request.series, grouping } };
    if (groupingEvidence(grouping, await ask(other)) === "values") return true;
  }
  return false;
}
