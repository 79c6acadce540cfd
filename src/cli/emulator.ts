// The command `emulator`: runs the emulator of the service, to try the product without the real service.

import { once } from "node:events";
import type { App } from "../app.ts";
import { keysOfMadeUpUsage } from "../emulator/keys.ts";
import { startEmulator } from "../emulator/server.ts";
import { AppError } from "../errors.ts";
import { COMMAND } from "../package-files.ts";
import type { Dialect } from "../usage/dimensions.ts";

export type EmulatorCommandOptions = {
  readonly port: number;
  readonly dialect: Dialect;
  /** The projects' ids. If there are several, one key reads them all. */
  readonly project: readonly string[];
};

const KEY_VARIABLE = "USAGE_EXPORT_KEY";

/** Listens on 127.0.0.1 only, because anyone who reaches it may use it. Runs until a signal stops it. */
export async function runEmulator(
  { env, write, signal }: Pick<App, "env" | "write" | "signal">,
  { port, dialect, project: projects }: EmulatorCommandOptions,
): Promise<number> {
  const secret = env[KEY_VARIABLE];
  if (!secret) {
    const message = `${KEY_VARIABLE} is not set: set it to any text, here and for the other commands; the emulator takes it as its first key`;
    throw new AppError("config", message);
  }
  const [first = ""] = projects;
  const key = { secret, projectId: first, scopes: ["member", "billing:read"], isAccountKey: projects.length > 1 };
  const consoleKeys = [key, ...projects.flatMap(keysOfMadeUpUsage)];
  const listed = projects.map((id) => ({ id, name: id }));
  const starting = startEmulator({ port, dialect, consoleKeys, projects: () => listed });
  await using emulator = await starting.catch((cause: unknown) => {
    const message = `can't listen on 127.0.0.1:${port}: choose another --port, or 0 for any free one`;
    throw new AppError("config", message, { cause });
  });
  const project = projects.length > 1 ? ` --project ${first}` : "";
  write(`The service's emulator answers at ${emulator.url} (dialect ${dialect}) until it is stopped. Its first key is the one in ${KEY_VARIABLE}.

To write a configuration for it: ${COMMAND} init --yes --base-url ${emulator.url}${project}
`);
  if (!signal.aborted) await once(signal, "abort");
  return 0;
}
