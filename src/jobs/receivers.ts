// Where notices go, by the references of the configuration.

import type { App } from "../app.ts";
import { addressProblems, readAddress } from "../config/addresses.ts";
import type { Config, SecretReference } from "../config/config.ts";
import { AppError } from "../errors.ts";
import type { Receiver } from "../monitor/post.ts";
import { proxyOf } from "../proxy.ts";
import { Secret } from "../secret.ts";

export type Receivers = { readonly webhook: Receiver | undefined; readonly deadMan: Receiver | undefined };

/** Throws `config` with all that is wrong with them. Nothing is sent. */
export async function requireReceivers(app: App, { notify }: Config): Promise<Receivers> {
  const problems = await addressProblems(notify, app.env);
  if (problems.length > 0) throw new AppError("config", problems.join("\n"));
  return {
    webhook: notify.webhook && (await read(app, "notify.webhook", notify.webhook)),
    deadMan: notify.deadMan && (await read(app, "notify.deadMan", notify.deadMan)),
  };
}

async function read(app: App, place: Receiver["place"], reference: SecretReference): Promise<Receiver> {
  const address = app.scrubber.add(await readAddress(reference, app.env));
  // An error may hold the path alone, which is what is secret of it.
  const { pathname, search } = new URL(address.reveal());
  app.scrubber.add(new Secret(`${pathname}${search}`));
  return { place, address, proxy: proxyOf(app.env) };
}
