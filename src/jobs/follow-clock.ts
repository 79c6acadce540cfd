// Reacts when somebody sets the database's clock: logs it, and continues by the clock as it is now.

import type { App } from "../app.ts";
import { forgetFuture, secondsSetBack } from "../db/clock.ts";
import { type Database, databaseNow } from "../db/database.ts";

/** True if the clock went back, so that other things are due now. */
export async function followClockBack(app: App, db: Database): Promise<boolean> {
  const seconds = await secondsSetBack(db);
  if (seconds === undefined) return false;
  app.log.warn(
    { seconds },
    "the database's clock went back: work that is due by it now runs, and stored times in its future are reset",
  );
  await forgetFuture(db);
  return true;
}

const FORWARD_MS_MIN = 30_000;

/** Each call reports by how much the database's clock has run ahead of this process's monotonic clock `now` since the call before. */
export function openClockWatch(
  app: Pick<App, "log">,
  db: Database,
  now: () => number = () => performance.now(),
): () => Promise<void> {
  let aheadMsBefore: number | undefined;
  return async () => {
    const aheadMs = (await databaseNow(db)).getTime() - now();
    const steppedMs = aheadMs - (aheadMsBefore ?? aheadMs);
    aheadMsBefore = aheadMs;
    if (steppedMs < FORWARD_MS_MIN) return;
    app.log.warn(
      { seconds: Math.round(steppedMs / 1000) },
      "the database's clock went forward, or this machine slept: work that is due by it now runs",
    );
  };
}
