// Compares the clocks that scheduled runs depend on: this machine's, the database's and the service's.

import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { openServiceFor } from "../open-service.ts";

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
  const service = await openServiceFor(app, config, undefined);
  try {
    return await service.fetchTime(app.signal);
  } finally {
    await service.close();
  }
}

/** Compares the answer with this machine's time halfway between question and answer. */
async function aheadSeconds(ask: () => Promise<Date | undefined>): Promise<number | undefined> {
  const askedMs = Date.now();
  const time = await ask();
  return time && Math.round((time.getTime() - (askedMs + Date.now()) / 2) / 1000);
}

const DIFFERENCE_SECONDS_MAX = 30;

/** Undefined if the clocks differ by too little to matter. */
export function clockWarning({ databaseAheadSeconds: database, serviceAheadSeconds }: Clocks): string | undefined {
  const service = serviceAheadSeconds ?? undefined;
  const known = [0, database, ...(service === undefined ? [] : [service])];
  if (Math.max(...known) - Math.min(...known) <= DIFFERENCE_SECONDS_MAX) return undefined;
  const parts = [
    `the database's is ${differenceText(database)} this machine's`,
    ...(service === undefined ? [] : [`the service's ${differenceText(service)} it`]),
  ];
  return `clocks differ: ${parts.join(", ")}; schedules and days go by the database's clock: set the one that is wrong`;
}

function differenceText(seconds: number): string {
  if (seconds === 0) return "the same as";
  return `${Math.abs(seconds)} s ${seconds > 0 ? "ahead of" : "behind"}`;
}
