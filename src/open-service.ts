import type { App } from "./app.ts";
import type { Config } from "./config/config.ts";
import type { Database } from "./db/connection/database.ts";
import { proxyOf } from "./proxy.ts";
import type { Service, ServiceDeps } from "./service/service.ts";

/** Loads the client only here, because half the commands make no calls. On one database all calls of the process share one rate. */
export async function openServiceFor(
  app: App,
  config: Config,
  db: Database | undefined,
  deps: Pick<ServiceDeps, "onAttempt" | "waitMsMax"> = {},
): Promise<Service> {
  const { openService } = await import("./service/client.ts");
  const { sharedRate } = await import("./shared-rate.ts");
  const rate = sharedRate(db, config.service, app.log);
  const scrub = (text: string) => app.scrubber.scrub(text);
  return openService(config.service, { ...deps, rate, proxy: proxyOf(app.env), log: app.log, scrub });
}
