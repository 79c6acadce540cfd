// Takes up a changed configuration while the worker runs. The file is read at an interval and compared: Kubernetes replaces a symbolic link
// above the file, editors rename a new file over the old one, and events of the file system tell neither reliably.

import { isDeepStrictEqual } from "node:util";
import type { App } from "../app.ts";
import { serialTask } from "../async.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { isTransient } from "../db/connection/errors.ts";
import type { ConfigRefusal } from "../db/jobs/jobs.ts";
import { AppError, errorText } from "../errors.ts";
import { type MonitorSecrets, readMonitorSecrets, revealSecrets } from "./monitor-secrets.ts";

/** A valid configuration with the secrets that the monitor needs. */
export type Loaded = MonitorSecrets & { readonly config: Config };

/** Throws if anything is wrong with the file or with a secret of the monitor. Sends no notification to check an address. */
export async function loadForWorker(app: App): Promise<Loaded> {
  const config = await loadConfig(app.configPath);
  return { config, ...(await readMonitorSecrets(app, config)) };
}

export type Reloader = ReturnType<typeof openReloader>;

export type ReloaderDeps = {
  readonly log: Pick<App["log"], "info" | "error">;
  readonly load: () => Promise<Loaded>;
  /** Throws if the worker couldn't start with this configuration. Called before the configuration in force is replaced. */
  readonly requireStartable: (config: Config) => Promise<void>;
  readonly onRefusalChange: (refusal: ConfigRefusal | undefined) => void;
};

export function openReloader(
  first: Loaded,
  { log, load, requireStartable, onRefusalChange }: ReloaderDeps,
  readEveryMs = 5_000,
) {
  let inForce = first;
  let superseded = new AbortController();
  let refusal: ConfigRefusal | undefined;

  async function takeUp(): Promise<void> {
    const next = await load();
    const isSame = isDeepStrictEqual([inForce.config, revealSecrets(inForce)], [next.config, revealSecrets(next)]);
    if (!isSame) {
      requireSameAddress(inForce.config, next.config);
      await requireStartable(next.config);
    }
    if (refusal) {
      refusal = undefined;
      log.info("the configuration is valid again");
      onRefusalChange(undefined);
    }
    if (isSame) return;
    const previous = superseded;
    inForce = next;
    superseded = new AbortController();
    log.info("the configuration has changed and is taken up");
    previous.abort();
  }

  const checks = serialTask(async () => {
    try {
      await takeUp();
    } catch (error) {
      const reason = errorText(error);
      // That the database can't be reached does not mean that the configuration is wrong.
      if (isTransient(error) || refusal?.reason === reason) return;
      refusal = { reason, at: refusal?.at ?? new Date() };
      log.error({ reason }, "the changed configuration is refused: the worker keeps the previous one");
      onRefusalChange(refusal);
    }
  });
  const timer = setInterval(checks.request, readEveryMs);

  return {
    /** The configuration in force. `superseded` is aborted when another one is taken up. */
    current: () => ({ ...inForce, superseded: superseded.signal }),
    refusal: () => refusal,
    /** Requests a reading of the configuration: the file or the discovered projects may have changed. */
    request: checks.request,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await checks.stop();
    },
  };
}

/** Throws if the monitor's address has changed: only a restart can change it. */
function requireSameAddress({ monitor: before }: Config, { monitor: after }: Config): void {
  for (const field of ["host", "port"] as const) {
    if (before[field] === after[field]) continue;
    const change = `from ${before[field]} to ${after[field]}; restart the worker, or undo the change`;
    throw new AppError("config", `monitor.${field}: a running worker can't change it ${change}`);
  }
}
