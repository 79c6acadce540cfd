// Checks the configuration's secrets, except the `first` keys of rotations. Reads the receivers' addresses and the credentials of visitors.

import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { SecretReference } from "../config/fields.ts";
import { readSecret, requireReadable, requireUnrotatedKeys, type SecretKind } from "../config/secrets.ts";
import { readMasterKeys } from "../keys/seal.ts";
import { proxyOf } from "../proxy.ts";
import { Secret } from "../secret.ts";
import type { Access } from "../web/access.ts";
import type { Receiver, Receivers } from "./webhook.ts";

export type MonitorSecrets = { readonly receivers: Receivers; readonly access: Access | undefined };

/** Throws an AppError "config" if a key, a secret of the monitor or a master key is missing or malformed. Sends nothing to check them. */
export async function requireSecrets(app: App, config: Config): Promise<MonitorSecrets> {
  await requireUnrotatedKeys(app, config);
  const secrets = await readMonitorSecrets(app, config);
  if (config.file.rotations.length > 0) readMasterKeys(app.env);
  return secrets;
}

export async function readMonitorSecrets(app: App, config: Config): Promise<MonitorSecrets> {
  const { webhook, deadMan } = config.notify;
  const receivers = {
    webhook: webhook && (await readReceiver(app, "notify.webhook", webhook)),
    deadMan: deadMan && (await readReceiver(app, "notify.deadMan", deadMan)),
  };
  return { receivers, access: await readAccess(app, config.monitor.access) };
}

async function readReceiver(app: App, field: Receiver["field"], reference: SecretReference): Promise<Receiver> {
  const address = await readSecretAt(app, field, "address", reference);
  // An error may contain the secret part of the address without the rest.
  const { pathname, search } = new URL(address.reveal());
  app.scrubber.add(new Secret(`${pathname}${search}`));
  return { field, address, proxy: proxyOf(app.env) };
}

/** `path` is the path of the reference in the configuration. Errors begin with it. */
async function readSecretAt(app: App, path: string, kind: SecretKind, reference: SecretReference): Promise<Secret> {
  await requireReadable([{ path: path.split("."), kind, reference }], app.env);
  return app.scrubber.add(await readSecret(kind, reference, app.env));
}

/** Undefined if visitors need not send anything. */
async function readAccess(app: App, access: Config["monitor"]["access"]): Promise<Access | undefined> {
  if (access === undefined || access === "none") return undefined;
  if ("bearer" in access) {
    return { scheme: "Bearer", credentials: await readSecretAt(app, "monitor.access.bearer", "token", access.bearer) };
  }
  const { username, password: reference } = access.basic;
  const password = await readSecretAt(app, "monitor.access.basic.password", "password", reference);
  return { scheme: "Basic", credentials: app.scrubber.add(new Secret(`${username}:${password.reveal()}`)) };
}

/** The secrets in plain text, for comparisons only. */
export function revealSecrets({ receivers: { webhook, deadMan }, access }: MonitorSecrets): readonly unknown[] {
  return [access?.scheme, ...[webhook?.address, deadMan?.address, access?.credentials].map((one) => one?.reveal())];
}
