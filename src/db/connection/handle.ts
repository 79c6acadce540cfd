// Which installation a database handle works for. Several configurations can share a database: each is an installation with jobs, runs,
// workers, budgets, alerts and a queue of its own. The handle carries the name, so that no statement can forget it.

import type { Kysely } from "kysely";
import { DEFAULT_INSTALLATION } from "../../usage/installation.ts";

// biome-ignore lint/suspicious/noExplicitAny: a handle with any tables is a key here, and nothing of it is read.
type Handle = Kysely<any>;

const installations = new WeakMap<Handle, string>();

/** To be called right after the database is opened, and for each of its transactions. */
export function assignInstallation<T extends Handle>(handle: T, installation: string): T {
  installations.set(handle, installation);
  return handle;
}

/** A handle that was given none works for the default installation. A transaction must have been given that of its database. */
export function installationOf(handle: Handle): string {
  const installation = installations.get(handle);
  if (installation === undefined && handle.isTransaction) throw new Error("a transaction without an installation");
  return installation ?? DEFAULT_INSTALLATION;
}
