// The command `health`: asks the worker on this machine whether it is healthy, so that a container's health check needs no other program.

import type { App } from "../app.ts";
import { loadConfig } from "../config/config.ts";
import { AppError } from "../errors.ts";
import { monitorUrl } from "../web/access.ts";

/** A worker that takes longer to answer is not healthy. */
const ANSWER_MS_MAX = 3_000;

/** Prints the worker's answer. If the worker is not healthy, the answer gives the reasons, and the exit status is 1. */
export async function runHealth(app: App, options: { readonly live?: boolean }): Promise<number> {
  const { monitor } = await loadConfig(app.configPath);
  if (monitor.port === 0) {
    throw new AppError("config", "monitor.port: expected a fixed port; got 0, which chooses any free port");
  }
  const url = `${monitorUrl(monitor)}${options.live ? "/livez" : "/readyz"}`;
  const signal = AbortSignal.any([app.signal, AbortSignal.timeout(ANSWER_MS_MAX)]);
  const response = await fetch(url, { signal }).catch((cause: unknown) => {
    throw new AppError("unavailable", `no worker answers at ${url}; \`usage-export start\` starts one`, { cause });
  });
  app.write(await response.text());
  return response.ok ? 0 : 1;
}
