// Judges the days that became final, and logs the unusual ones.

import { judgeFinalDays } from "../db/anomalies.ts";
import { isConnectionError } from "../db/connection/errors.ts";
import { errorText } from "../errors.ts";
import type { ExportContext } from "./export-context.ts";

/** Never throws, except if the database can't be reached: no run fails because its days could not be judged. */
export async function judgeDays({ app, db, config }: Pick<ExportContext, "app" | "db" | "config">): Promise<void> {
  try {
    for (const { verdict, ...day } of await judgeFinalDays(db, config.anomalies)) {
      if (verdict === "high" || verdict === "low") app.log.warn({ ...day, verdict }, "unusual usage");
    }
  } catch (error) {
    if (isConnectionError(error)) throw error;
    app.log.warn({ reason: errorText(error) }, "days not judged");
  }
}
