// The resources that commands and workers share, and how they are opened and closed.

import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { storeBudgets, storePrices } from "../db/prices-and-budgets.ts";
import { openReader, type Reader } from "../db/usage/due-slices.ts";
import { type NextFetchNo, openFetchNumbers, raiseLaggingSequences } from "../db/usage/fetch-numbers.ts";
import { registerSeries, type SeriesIds } from "../db/usage/stored-series.ts";
import { openWriter, type Writer } from "../db/usage/writer.ts";
import { keepMemoryFlat } from "../heap.ts";
import { openServiceFor } from "../open-service.ts";
import type { Service, ServiceDeps } from "../service/client-types.ts";
import { configuredSeries } from "../usage/export-plan.ts";
import { Dialects } from "./dialects.ts";
import { makeFirstDaysDue } from "./discovery.ts";
import { withFanOutFilters } from "./fan-outs.ts";
import { type KeyRing, openKeyRing } from "./key-ring.ts";

export type ServiceContext<Db extends Database | undefined = Database | undefined> = {
  readonly app: App;
  readonly config: Config;
  /** Undefined in `init`, and in `check` while the database can't be reached. */
  readonly db: Db;
  readonly service: Service;
  readonly keyRing: KeyRing;
  readonly dialects: Dialects;
};

export type RotationContext = Pick<ServiceContext<Database>, "app" | "db" | "service" | "keyRing">;

/** Shared by all runs of a process: requests of the same moment take fetch numbers, read the database and store answers in batches. */
export type ExportContext = ServiceContext<Database> & {
  readonly ids: SeriesIds;
  readonly nextFetchNo: NextFetchNo;
  readonly reader: Reader;
  readonly writer: Writer;
};

type ServiceOptions = Pick<ServiceDeps, "onAttempt" | "waitMsMax">;

/** Makes no connection to the service before the first call. Throws an AppError with the code "config" if a key is missing. */
export async function openServiceContext<Db extends Database | undefined>(
  app: App,
  config: Config,
  db: Db,
  options: ServiceOptions = {},
): Promise<ServiceContext<Db> & AsyncDisposable> {
  const keyRing = await openKeyRing(app, config, db);
  const service = await openServiceFor(app, config, db, options);
  const dialects = new Dialects({ app, db, service, keyRing });
  return { app, config, db, service, keyRing, dialects, [Symbol.asyncDispose]: service[Symbol.asyncDispose] };
}

/** Registers the configured series, makes the first days of discovered projects due, and stores prices and budgets. */
export async function openExportContext(app: App, configured: Config, db: Database, options: ServiceOptions = {}) {
  // Registering the series of a configuration without its discovered projects would retire all their series.
  if (configured.discovery.length > 0 && configured.projectsVersion === undefined) {
    throw new Error("the discovered projects were not added to the configuration");
  }
  // Exports read many large answers.
  keepMemoryFlat();
  await raiseLaggingSequences(db, app.log);
  // A command with picked days has already put a filter for each fan-out value of those days into `seen`.
  const config = configured.exports.some(({ seen }) => seen) ? configured : await withFanOutFilters(configured, db);
  const context = await openServiceContext(app, config, db, options);
  const ids = await registerSeries(db, configuredSeries(config.exports));
  await makeFirstDaysDue(db, config, ids);
  const { prices, budgets } = config;
  // At the first start an empty list counts as changed, too, which is not worth an info message.
  const level = (list: readonly unknown[]) => (list.length > 0 ? "info" : "debug");
  if (await storePrices(db, prices)) app.log[level(prices)]({ prices: prices.length }, "prices changed");
  if (await storeBudgets(db, budgets)) app.log[level(budgets)]({ budgets: budgets.length }, "budgets changed");
  return { ...context, ids, nextFetchNo: openFetchNumbers(db), reader: openReader(db), writer: openWriter(db) };
}
