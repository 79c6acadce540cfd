// Keeps the dashboard of a demo up until it is told to stop.

import { once } from "node:events";
import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/database.ts";
import type { Contact } from "../worker/contact.ts";
import { openMonitoring } from "../worker/monitoring.ts";

/** There is no worker whose work could hang, and the database is in this process. */
const CONTACT: Contact = { note() {}, lost() {}, beat() {}, reasons: () => [], isLive: () => true };

export async function serveDashboard(app: App, config: Config, db: Database): Promise<void> {
  const monitor = { host: "127.0.0.1", port: 0 };
  const deps = { db, contact: CONTACT, access: undefined };
  await using monitoring = await openMonitoring(app, { ...config, monitor }, deps);
  app.write(`dashboard: ${monitoring.url}/ until you press Ctrl-C\n`);
  if (!app.signal.aborted) await once(app.signal, "abort");
}
