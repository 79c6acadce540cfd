import { type App, originOf, readConfig, withDatabase } from "../app.ts";
import { resumeCalls } from "../db/service-pace.ts";
import { instant } from "./instant.ts";

/** Ends the pause that the service asked for. The request may have come from a gateway that is repaired by now. */
export async function runResumeCalls(app: App, { json }: { readonly json?: boolean }): Promise<number> {
  const service = originOf(await readConfig(app));
  const until = await withDatabase(app, (db) => resumeCalls(db, service));
  if (json) app.write(`${JSON.stringify({ service, pausedUntil: until ?? null })}\n`);
  else if (until) app.write(`calls to ${service} go on; they were paused until ${instant(until)}\n`);
  else app.write(`calls to ${service} were not paused\n`);
  return 0;
}
