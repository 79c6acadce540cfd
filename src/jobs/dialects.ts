// Finds out which dialect the service speaks. The service mistakes an unknown parameter for a feature, so only its answer shows whether it
// grouped or filtered as asked. With "auto" a probe finds the dialect for all processes, and is repeated after a doubtful answer.

import type { App } from "../app.ts";
import { memoizeAsync } from "../async.ts";
import type { Database } from "../db/connection/database.ts";
import { storeDialect, storedDialect } from "../db/project-facts.ts";
import type { Secret } from "../secret.ts";
import { hasStatus } from "../service/answer.ts";
import { DEFAULT_DIALECT, dependsOnDialect, fetchBreakdown } from "../service/breakdown.ts";
import type { Service } from "../service/client-types.ts";
import { dayOf, lastDays, type Window } from "../usage/days.ts";
import type { Dialect } from "../usage/dimensions.ts";
import { REQUEST_DAYS_MAX, type UsageRequest } from "../usage/export-plan.ts";
import { groupingEvidence } from "../usage/normalise.ts";
import { ALL_USAGE, type Project, type Series } from "../usage/series.ts";
import type { KeyRing } from "./key-ring.ts";

/** In the order of the probes. If a service knows both dialects, "2026" is used, as the public service speaks it. */
const PROBED_DIALECTS: readonly Dialect[] = ["2026", "interface"];

/** The result of a probe is kept for this long. Without usage a probe finds nothing, and every request of a run would probe again. */
const PROBE_KEPT_MS = 60_000;

type DialectDeps = {
  readonly app: App;
  /** Keeps the dialect for other processes; undefined if there is no database. */
  readonly db: Database | undefined;
  readonly service: Service;
  readonly keyRing: Pick<KeyRing, "use">;
};

export class Dialects {
  readonly #deps: DialectDeps;
  readonly #probes = memoizeAsync<Dialect | undefined>(() => PROBE_KEPT_MS);
  #found: Dialect | undefined;
  #isWarned = false;

  constructor(deps: DialectDeps) {
    this.#deps = deps;
  }

  async forRequest({ series, window }: UsageRequest): Promise<Dialect> {
    const { app, service, db } = this.#deps;
    if (service.dialect !== "auto") return service.dialect;
    // A probe reads usage, and a key for billing may not be allowed to.
    if (series.source === "billing" || !dependsOnDialect(series)) return DEFAULT_DIALECT;
    const stored = this.#found ?? (db && (await storedDialect(db, service.baseUrl)));
    // While the database was read, a probe for another request may have found the dialect.
    this.#found ??= stored;
    // The newest days are probed: those of the request may be too long ago to have usage.
    if (this.#found === undefined)
      await this.#probeOnce(series.project, window && lastDays(dayOf(new Date()), REQUEST_DAYS_MAX));
    if (this.#found !== undefined) return this.#found;
    const text = "no usage shows yet which dialect the service speaks, so the default is used";
    if (!this.#isWarned) app.log.warn({ dialect: DEFAULT_DIALECT }, text);
    this.#isWarned = true;
    return DEFAULT_DIALECT;
  }

  /** Called if the answer in dialect `used` was not grouped or is in doubt. Returns the dialect to repeat the request in, if there is one. */
  async alternative({ series, window }: UsageRequest, used: Dialect): Promise<Dialect | undefined> {
    if (this.#deps.service.dialect !== "auto" || !dependsOnDialect(series)) return undefined;
    if (series.source === "billing") return used === "2026" ? "interface" : "2026";
    await this.#probeOnce(series.project, window);
    return this.#found === used ? undefined : this.#found;
  }

  /** Whether a probe shows that the service speaks the dialect. */
  async isProved({ series, window }: UsageRequest, dialect: Dialect): Promise<boolean> {
    if (this.#deps.service.dialect !== "auto" || series.source !== "usage") return false;
    return (await this.#probeOnce(series.project, window)) === dialect;
  }

  #probeOnce(project: Project, window: Window | undefined): Promise<Dialect | undefined> {
    return this.#probes(JSON.stringify([project.id, window]), () => this.probe(project, window));
  }

  /** Requests usage by model in one dialect after the other, until a row names a model: that proves the dialect. Undefined if none does. */
  async probe(project: Project, window: Window | undefined): Promise<Dialect | undefined> {
    const { app, db, service, keyRing } = this.#deps;
    const series: Series = { project, source: "usage", grouping: "model", filter: ALL_USAGE };
    for (const dialect of PROBED_DIALECTS) {
      const call = (key: Secret) => fetchBreakdown(service, { series, window }, key, app.signal, { dialect });
      const answer = await keyRing.use(project, call).catch((error: unknown) => {
        // A service may refuse the parameter names of the other dialect.
        if (!hasStatus(error, 400, 422)) throw error;
      });
      if (groupingEvidence("model", answer) !== "value") continue;
      if (dialect === this.#found) return dialect;
      const facts = { project: project.name, dialect, before: this.#found };
      app.log.debug(facts, "found out which dialect the service speaks");
      this.#found = dialect;
      if (db) await storeDialect(db, service.baseUrl, dialect);
      return dialect;
    }
  }
}
