// What the monitor asks of visitors, by the references of the configuration.

import type { App } from "../app.ts";
import { accessProblems, readAccess } from "../config/access.ts";
import type { Config } from "../config/config.ts";
import { AppError } from "../errors.ts";
import type { Access } from "../monitor/access.ts";
import { Secret } from "../secret.ts";

/** Throws `config` with what is wrong with it. Undefined where nothing is asked. */
export async function requireAccess(app: App, { monitor }: Config): Promise<Access | undefined> {
  const problems = await accessProblems(monitor, app.env);
  if (problems.length > 0) throw new AppError("config", problems.join("\n"));
  if (monitor.access === undefined) return undefined;
  const read = await readAccess(monitor.access, app.env);
  if (read.kind === "bearer") return { scheme: "Bearer", credentials: app.scrubber.add(read.token) };
  const password = app.scrubber.add(read.password);
  return { scheme: "Basic", credentials: app.scrubber.add(new Secret(`${read.username}:${password.reveal()}`)) };
}
