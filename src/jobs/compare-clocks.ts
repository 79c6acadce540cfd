// Compares the clocks that a night goes by: this machine's, the database's and the service's.

import { type App, openServiceOf } from "../app.ts";
import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/database.ts";

/** By how many seconds each is ahead of this machine's clock, or behind it where that is negative. */
export type Clocks = {
  readonly databaseAheadSeconds: number;
  /** Null where the service was not asked, or did not say. */
  readonly serviceAheadSeconds: number | null;
};

export async function compareClocks(app: App, config: Config, db: Database, askService: boolean): Promise<Clocks> {
  const databaseAheadSeconds = await aheadSeconds(() => databaseNow(db));
  const serviceAheadSeconds = askService ? await aheadSeconds(() => timeOfService(app, config)) : undefined;
  return { databaseAheadSeconds: databaseAheadSeconds ?? 0, serviceAheadSeconds: serviceAheadSeconds ?? null };
}

async function timeOfService(app: App, config: Config): Promise<Date | undefined> {
  const service = await openServiceOf(app, config);
  try {
    return await service.askTime(app.signal);
  } finally {
    await service.close();
  }
}

/** Against the middle of the time it took to ask. */
async function aheadSeconds(ask: () => Promise<Date | undefined>): Promise<number | undefined> {
  const beforeMs = Date.now();
  const there = await ask();
  return there && Math.round((there.getTime() - (beforeMs + Date.now()) / 2) / 1000);
}

const APART_SECONDS_MAX = 30;

/** Undefined where all show the same, within what nobody notices. */
export function clockWarning({ databaseAheadSeconds: database, serviceAheadSeconds }: Clocks): string | undefined {
  const service = serviceAheadSeconds ?? undefined;
  const known = [0, database, ...(service === undefined ? [] : [service])];
  if (Math.max(...known) - Math.min(...known) <= APART_SECONDS_MAX) return undefined;
  const parts = [
    `the database's is ${apart(database)} this machine's`,
    ...(service === undefined ? [] : [`the service's ${apart(service)} it`]),
  ];
  return `clocks differ: ${parts.join(", ")}; schedules and days go by the database's clock: set the one that is wrong`;
}

function apart(seconds: number): string {
  if (seconds === 0) return "the same as";
  return `${Math.abs(seconds)} s ${seconds > 0 ? "ahead of" : "behind"}`;
}
