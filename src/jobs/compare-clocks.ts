// Compares the clocks that scheduled runs depend on: this machine's, the database's and the service's.

import { type App, openServiceOf } from "../app.ts";
import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/database.ts";

/** By how many seconds each clock is ahead of this machine's clock; negative if it is behind. */
export type Clocks = {
  readonly databaseAheadSeconds: number;
  /** Null if the service was not asked or did not tell its time. */
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

/** Compares with the middle of the time that the question took. */
async function aheadSeconds(ask: () => Promise<Date | undefined>): Promise<number | undefined> {
  const beforeMs = Date.now();
  const there = await ask();
  return there && Math.round((there.getTime() - (beforeMs + Date.now()) / 2) / 1000);
}

const APART_SECONDS_MAX = 30;

/** Undefined if the clocks differ by too little to matter. */
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
