// Takes up a changed configuration while the worker runs. Its files are compared by content at an interval: Kubernetes replaces a
// symbolic link above them, editors rename a new file over the old one, and events of the file system tell neither reliably.

import { createHash } from "node:crypto";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { App } from "../app.ts";
import { serialTask } from "../async.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { isTransient } from "../db/connection/errors.ts";
import type { ConfigRefusal } from "../db/jobs/jobs.ts";
import { AppError, errorText, systemCode } from "../errors.ts";
import { readRegularFile } from "../files.ts";
import { areSameSecrets, type MonitorSecrets, monitorSecretFiles, requireSecrets } from "../jobs/monitor-secrets.ts";

/** A valid configuration with the secrets that the monitor needs. */
export type Loaded = MonitorSecrets & {
  readonly config: Config;
  /** Of the files that it was read from. The configuration is loaded again when one of them has changed. */
  readonly contents: Contents;
};

/** By path, a hash of the content of the file, or why it can't be read. */
type Contents = ReadonlyMap<string, string>;

/**
 * Reads and checks the configuration and every secret that it names. Throws if anything is wrong. Nothing is sent. `beforeSecrets` may
 * throw what a person should correct first.
 */
export async function loadForWorker(app: App, beforeSecrets: () => void = () => {}): Promise<Loaded> {
  // Read before the file itself is: a change in between is then noticed as one.
  const own = await readContents([path.resolve(app.configPath)]);
  const config = await loadConfig(app.configPath);
  beforeSecrets();
  const secrets = await requireSecrets(app, config);
  const others = await readContents(monitorSecretFiles(config));
  return { config, ...secrets, contents: new Map([...own, ...others]) };
}

async function readContents(files: Iterable<string>): Promise<Contents> {
  const entries = [...files].map(async (file) => {
    const content = await readRegularFile(file).catch(systemCode);
    return [file, typeof content === "string" ? content : createHash("sha256").update(content).digest("hex")] as const;
  });
  return new Map(await Promise.all(entries));
}

export type Reloader = AsyncDisposable & {
  /** The configuration in force. `superseded` is aborted when another one is taken up. */
  readonly current: () => Loaded & { readonly superseded: AbortSignal };
  /** Why the newest configuration is not in force; undefined if it is. */
  readonly refusal: () => ConfigRefusal | undefined;
  /** Reads the configuration soon, whether or not a file has changed. */
  readonly request: () => void;
};

export type ReloaderDeps = {
  readonly log: Pick<App["log"], "info" | "error">;
  /** Throws why the worker can't work with the configuration, so that it finds out before it ends its work. */
  readonly load: () => Promise<Loaded>;
  readonly onRefusalChange: (refusal: ConfigRefusal | undefined) => void;
};

/** How often the content of the files is compared. */
const COMPARE_MS = 2_000;
/** How often a refused configuration is checked again although its files are the same: a secret that it names may be there now. */
const RECHECK_MS = 30_000;

/**
 * Each check of the files is a step to the next state:
 *
 * | What was read | The next state |
 * | --- | --- |
 * | nothing, as the files are the same | the same |
 * | nothing, as the database is away | the same: the next check reads again |
 * | the configuration in force | without a refusal |
 * | another one | `inForce` is it, without a refusal; `superseded` of the one before is aborted |
 * | one that is wrong, or that needs another process | `inForce` stays, with a refusal |
 */
type State = {
  readonly inForce: Loaded;
  readonly superseded: AbortController;
  readonly refusal: ConfigRefusal | undefined;
  /** Of the files that were read last, whether their configuration is in force or refused. */
  readonly contents: Contents;
  readonly readMs: number;
  /** Somebody asked for a check whose result is still to come. */
  readonly isRequested: boolean;
};

export function openReloader(
  first: Loaded,
  { log, load, onRefusalChange }: ReloaderDeps,
  { compareMs = COMPARE_MS, recheckMs = RECHECK_MS } = {},
): Reloader {
  let state: State = {
    ...{ inForce: first, superseded: new AbortController(), refusal: undefined },
    ...{ contents: first.contents, readMs: performance.now(), isRequested: false },
  };

  function refuse(error: unknown): void {
    const reason = errorText(error);
    if (state.refusal?.reason === reason) return;
    state = { ...state, refusal: { reason, at: state.refusal?.at ?? new Date() } };
    log.error({ reason }, "the changed configuration is refused: the worker goes on with the one before");
    onRefusalChange(state.refusal);
  }

  function accept(next: Loaded): void {
    const { inForce, superseded, refusal } = state;
    if (refusal) {
      state = { ...state, refusal: undefined };
      log.info("the configuration is valid again");
      onRefusalChange(undefined);
    }
    if (isDeepStrictEqual(inForce.config, next.config) && areSameSecrets(inForce, next)) return;
    state = { ...state, inForce: next, superseded: new AbortController() };
    log.info(describeChange(inForce.config, next.config), "the configuration has changed and is taken up");
    superseded.abort();
  }

  const checks = serialTask(async () => {
    const { contents, readMs, refusal, isRequested } = state;
    const found = await readContents(contents.keys());
    const isRecheck = refusal !== undefined && performance.now() - readMs >= recheckMs;
    if (!isRequested && !isRecheck && isDeepStrictEqual(contents, found)) return;
    state = { ...state, readMs: performance.now(), isRequested: false };
    try {
      const next = await load();
      requireUnchangeable(state.inForce.config, next.config);
      state = { ...state, contents: next.contents };
      accept(next);
    } catch (error) {
      // A database that is away does not show that the configuration is wrong.
      if (isTransient(error)) {
        state = { ...state, isRequested: true };
        return;
      }
      state = { ...state, contents: found };
      refuse(error);
    }
  });
  const timer = setInterval(checks.request, compareMs);

  return {
    current: () => ({ ...state.inForce, superseded: state.superseded.signal }),
    refusal: () => state.refusal,
    request() {
      state = { ...state, isRequested: true };
      checks.request();
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await checks.stop();
    },
  };
}

/** Throws for a change that would need another process. */
function requireUnchangeable({ monitor: before }: Config, { monitor: after }: Config): void {
  for (const field of ["host", "port"] as const) {
    if (before[field] === after[field]) continue;
    const change = `from ${before[field]} to ${after[field]}; restart the worker, or undo the change`;
    throw new AppError("config", `monitor.${field}: a running worker can't change it ${change}`);
  }
}

/** How many jobs and projects there are now, and how many came and went. */
function describeChange(before: Config, after: Config) {
  const counts = (["projects", "exports", "rotations"] as const).map((kind) => {
    const namesIn = (config: Config) => new Set(config[kind].map(({ name }) => name));
    const [was, is] = [namesIn(before), namesIn(after)];
    return [kind, { configured: is.size, added: is.difference(was).size, removed: was.difference(is).size }];
  });
  return Object.fromEntries(counts);
}
