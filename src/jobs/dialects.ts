// Chooses the dialect of a request. If the configuration says "auto", a probe finds the dialect, and all runs and processes use
// what it found. An answer that does not fit causes a new probe.

import { dependsOnDialect } from "../api/breakdown.ts";
import { hasModel, hasRows, probeDialect } from "../api/dialect.ts";
import type { Dialect, Service } from "../api/service.ts";
import type { App } from "../app.ts";
import type { Database } from "../db/database.ts";
import { storeDialect, storedDialect } from "../db/service-dialects.ts";
import { addDays, dayOf, type Window } from "../usage/day.ts";
import { REQUEST_DAYS_MAX, type UsageRequest } from "../usage/plan.ts";
import type { Project } from "../usage/series.ts";
import type { KeyRing } from "./keys-in-use.ts";

export type Dialects = {
  readonly of: (request: UsageRequest) => Promise<Dialect>;
  /** Called after an answer in the used dialect did not fit. Returns the other dialect if a probe finds that the service speaks it. */
  readonly instead: (request: UsageRequest, used: Dialect) => Promise<Dialect | undefined>;
  /** Whether an answer grouped by model shows that the request was in the service's dialect. */
  readonly fits: (request: UsageRequest, answer: unknown) => boolean;
  /** Probes even if the dialect is known. Undefined if there is no usage to decide by. */
  readonly find: (project: Project, windowed: boolean) => Promise<Dialect | undefined>;
};

export type DialectDeps = {
  readonly app: Pick<App, "log" | "signal">;
  /** If undefined, the database is away, and only this process uses what the probe finds. */
  readonly db: Database | undefined;
  readonly service: Service;
  readonly keys: KeyRing;
};

/** Used while there is no usage to decide by: the public service speaks it today. */
export const DEFAULT_DIALECT: Dialect = "2026";

/** Pause after a probe that found nothing, or nothing new. Without it each of the many requests of a run would probe. */
const REST_MS = 60_000;

export function openDialects({ app, db, service, keys }: DialectDeps, now = () => performance.now()): Dialects {
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
    if (lastMs !== undefined && now() - lastMs < REST_MS) return undefined;
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
    async of({ series, window }) {
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
    async instead({ series, window }, used) {
      if (service.dialect !== "auto" || !dependsOnDialect(series)) return undefined;
      const dialect = (await probe(series.project, window)) ?? found;
      return dialect === used ? undefined : dialect;
    },
    fits: ({ series }, answer) => series.grouping !== "model" || !hasRows(answer) || hasModel(answer),
    async find(project, windowed) {
      return service.dialect === "auto" ? probeNow(project, windowed ? recentDays() : undefined) : service.dialect;
    },
  };
}

function recentDays(): Window {
  const yesterday = addDays(dayOf(new Date()), -1);
  return { start: addDays(yesterday, 1 - REQUEST_DAYS_MAX), end: yesterday };
}
