// How the service understands requests: which dialect it speaks, and whether it groups at all. If the configuration says "auto",
// a probe finds the dialect, and all runs and processes use what it found; an answer that does not fit causes a new probe.

import { storeDialect, storedDialect } from "../db/dialect.ts";
import { AppError } from "../errors.ts";
import { dependsOnDialect, hasModel, hasRows, probeDialect } from "../service/usage.ts";
import { addDays, dayOf, type Window } from "../usage/days.ts";
import { hasValue, isAllNull } from "../usage/normalise.ts";
import { REQUEST_DAYS_MAX, type UsageRequest } from "../usage/plan.ts";
import type { Dialect, Dimension, Project } from "../usage/series.ts";
import type { Dialects, GroupingCheck, ServiceContext } from "./export-context.ts";

/** Used while there is no usage to decide by: the public service speaks it today. */
export const DEFAULT_DIALECT: Dialect = "2026";

/** Pause after a probe that found nothing, or nothing new. Without it each of the many requests of a run would probe. */
const PROBE_PAUSE_MS = 60_000;

export function openDialects(
  { app, db, service, keys }: Pick<ServiceContext, "app" | "db" | "service" | "keys">,
  now = () => performance.now(),
): Dialects {
  let found: Dialect | undefined;
  const underWay = new Map<string, Promise<Dialect | undefined>>();
  const probedMs = new Map<string, number>();
  const warned = new Set<string>();

  async function known(): Promise<Dialect | undefined> {
    found ??= db && (await storedDialect(db, service.baseUrl));
    return found;
  }

  /** Runs one probe at a time for each project and window. Undefined at once if the last probe was not long ago. */
  async function probe(project: Project, window: Window | undefined): Promise<Dialect | undefined> {
    const key = JSON.stringify([project.id, window]);
    const running = underWay.get(key);
    if (running !== undefined) return running;
    const lastMs = probedMs.get(key);
    if (lastMs !== undefined && now() - lastMs < PROBE_PAUSE_MS) return undefined;
    const begun = probeNow(project, window).finally(() => underWay.delete(key));
    underWay.set(key, begun);
    const dialect = await begun;
    probedMs.set(key, now());
    return dialect;
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

  return {
    async forRequest({ series, window }) {
      if (service.dialect !== "auto") return service.dialect;
      if (!dependsOnDialect(series)) return DEFAULT_DIALECT;
      const { project } = series;
      const dialect =
        (await known()) ?? (await probe(project, window && recentDays())) ?? (await probe(project, window));
      if (dialect !== undefined) return dialect;
      // Another request may have found the dialect while this one waited.
      if (found !== undefined) return found;
      if (!warned.has(project.id)) {
        warned.add(project.id);
        const log = { project: project.name, dialect: DEFAULT_DIALECT };
        app.log.warn(log, "no usage shows which dialect the service speaks: the default is used until some does");
      }
      return DEFAULT_DIALECT;
    },
    async alternative({ series, window }, used) {
      if (service.dialect !== "auto" || !dependsOnDialect(series)) return undefined;
      const dialect = (await probe(series.project, window)) ?? found;
      return dialect === used ? undefined : dialect;
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

// Checks that the service groups at all if no row of an answer has a value of the requested dimension. A service that ignores
// `grouping` answers with the total and null in every dimension, which looks like usage without tags.

/** Every request to the service has a value of these dimensions. */
const ALWAYS_FILLED: readonly Dimension[] = ["endpoint", "method", "model"];
const OTHER_GROUPINGS_MAX = 2;

/**
 * How long the result for one request holds for all requests of the project: long if the service groups, short if it does not,
 * because it may be repaired.
 */
const GROUPS_MS = 60 * 60_000;
const IGNORES_MS = 60_000;

type KnownGrouping = { readonly groups: boolean; readonly untilMs: number };

export function openGroupingCheck(now = () => performance.now()): GroupingCheck {
  const known = new Map<string, KnownGrouping>();
  const underWay = new Map<string, Promise<boolean>>();

  /** A failed check is not remembered. */
  async function findOut(request: UsageRequest, ask: Parameters<GroupingCheck["require"]>[2]): Promise<boolean> {
    const { series } = request;
    let groups = false;
    for (const grouping of otherGroupings(request)) {
      const other = { ...request, series: { ...series, grouping } };
      groups ||= hasValue(other, await ask(other));
    }
    known.set(series.project.id, { groups, untilMs: now() + (groups ? GROUPS_MS : IGNORES_MS) });
    return groups;
  }

  async function groups(request: UsageRequest, ask: Parameters<GroupingCheck["require"]>[2]): Promise<boolean> {
    const { id } = request.series.project;
    const before = known.get(id);
    if (before && now() < before.untilMs) return before.groups;
    const asking = underWay.get(id) ?? findOut(request, ask).finally(() => underWay.delete(id));
    underWay.set(id, asking);
    return asking;
  }

  return {
    async require(request, answer, ask) {
      if (!isAllNull(request, answer) || (await groups(request, ask))) return;
      const { grouping } = request.series;
      const others = otherGroupings(request).join(" or ");
      throw new AppError(
        "bad_answer",
        `no row has a value of "${grouping}", and none has one by ${others} either: the service seems to answer the total whatever "grouping" asks for; export "none" alone, or ask the vendor`,
      );
    },
  };
}

function otherGroupings({ series: { grouping } }: UsageRequest): Dimension[] {
  return ALWAYS_FILLED.filter((dimension) => dimension !== grouping).slice(0, OTHER_GROUPINGS_MAX);
}
