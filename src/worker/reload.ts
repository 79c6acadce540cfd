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
  const otherFiles: string[] = [];
  const config = await loadConfig(app.configPath, { onFile: (file) => otherFiles.push(file) });
  beforeSecrets();
  const secrets = await requireSecrets(app, config);
  const others = await readContents([...otherFiles, ...monitorSecretFiles(config)]);
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
  /** The configuration in force: it may be another one at each call. */
  readonly current: () => Loaded;
  /** Aborted when the configuration in force is replaced. */
  readonly superseded: () => AbortSignal;
  /** Puts another form of the configuration in force in place of the current one, before anybody works with that. */
  readonly complete: (config: Config) => void;
  /** Loads the configuration soon, whether or not a file has changed. */
  readonly request: () => void;
  /** As `request`, for a person: also a configuration with which the worker could not start is tried again. */
  readonly retry: () => void;
  /** The worker has started with the configuration in force. */
  readonly started: () => void;
  /** The worker could not start with `failed`: the one that it started with last is in force again. False if there is none. */
  readonly revert: (failed: Loaded, error: unknown) => boolean;
  /** Why the newest configuration is not in force; undefined if it is. */
  readonly refusal: () => ConfigRefusal | undefined;
  /** Begins to compare the files. */
  readonly watch: (listener: ReloadListener) => void;
};

export type ReloaderDeps = {
  readonly log: Pick<App["log"], "info" | "error">;
  /** Throws why the worker could not start with the configuration, as far as that can be found out before it ends its work. */
  readonly load: () => Promise<Loaded>;
};

type ReloadListener = {
  readonly onReload: (result: "taken" | "refused") => void;
  readonly onRefusalChange: (refusal: ConfigRefusal | undefined) => void;
};

/** How often the content of the files is compared. */
const COMPARE_MS = 2_000;
/** How often a refused configuration is checked again although its files are the same: a secret that it names may be there now. */
const RECHECK_MS = 30_000;

/**
 * | State | The worker | It can't start with `loaded` | Another configuration is taken up |
 * | --- | --- | --- | --- |
 * | `first` | starts, with nothing to go back to | it ends | `first` |
 * | `trying` | starts | `running` with `fallback`; `loaded` is `unusable` | `trying`, with the same `fallback` |
 * | `running` | has started | `running` with `fallback`, if there is one | `trying`, with `loaded` as `fallback` |
 */
type InForce = {
  readonly is: "first" | "trying" | "running";
  readonly loaded: Loaded;
  /** Aborted when another one is taken up. */
  readonly superseded: AbortController;
  /** The one before with which the worker has started. */
  readonly fallback?: Loaded | undefined;
};

export function openReloader(
  first: Loaded,
  { log, load }: ReloaderDeps,
  { compareMs = COMPARE_MS, recheckMs = RECHECK_MS } = {},
): Reloader {
  let inForce: InForce = { is: "first", loaded: first, superseded: new AbortController() };
  /** The newest files, why they are refused, and whether the worker was found unable to start with them: each attempt ends its work. */
  let files: { readonly contents: Contents; readonly readMs: number } = { ...first, readMs: performance.now() };
  let refusal: ConfigRefusal | undefined;
  let unusable: Loaded | undefined;
  let isForced = false;
  let listener: ReloadListener = { onReload: () => {}, onRefusalChange: () => {} };

  function refuse(error: unknown): void {
    const reason = errorText(error);
    if (refusal?.reason === reason) return;
    refusal = { reason, at: refusal?.at ?? new Date() };
    log.error({ reason }, "the changed configuration is refused: the worker goes on with the one before");
    listener.onReload("refused");
    listener.onRefusalChange(refusal);
  }

  function take(next: Loaded): void {
    const { is, loaded, superseded, fallback } = inForce;
    requireUnchangeable(loaded.config, next.config);
    if (unusable && isSame(unusable, next)) return;
    unusable = undefined;
    if (refusal) {
      refusal = undefined;
      log.info("the configuration is valid again");
      listener.onRefusalChange(undefined);
    }
    if (isSame(loaded, next)) return;
    inForce = {
      is: is === "first" ? "first" : "trying",
      loaded: next,
      superseded: new AbortController(),
      fallback: is === "running" ? loaded : fallback,
    };
    log.info(describeChange(loaded.config, next.config), "the configuration has changed and is taken up");
    listener.onReload("taken");
    superseded.abort();
  }

  const checks = serialTask(async () => {
    const wasForced = isForced;
    isForced = false;
    const contents = await readContents(files.contents.keys());
    const isRecheck = refusal !== undefined && performance.now() - files.readMs >= recheckMs;
    if (!wasForced && !isRecheck && isDeepStrictEqual(files.contents, contents)) return;
    files = { ...files, readMs: performance.now() };
    try {
      const next = await load();
      files = { ...files, contents: next.contents };
      take(next);
    } catch (error) {
      // A database that is away does not show that the configuration is wrong: the next check tries again.
      if (isTransient(error)) return;
      files = { ...files, contents };
      refuse(error);
    }
  });
  let timer: NodeJS.Timeout | undefined;

  const request = () => {
    isForced = true;
    checks.request();
  };

  return {
    current: () => inForce.loaded,
    superseded: () => inForce.superseded.signal,
    refusal: () => refusal,
    watch(newListener) {
      listener = newListener;
      timer = setInterval(checks.request, compareMs);
    },
    complete(config) {
      inForce = { ...inForce, loaded: { ...inForce.loaded, config } };
    },
    request,
    started() {
      inForce = { ...inForce, is: "running" };
    },
    retry() {
      unusable = undefined;
      request();
    },
    revert(failed, error) {
      const { loaded, fallback } = inForce;
      if (failed !== loaded) return true;
      if (fallback === undefined) return false;
      unusable = failed;
      inForce = { ...inForce, is: "running", loaded: fallback, fallback: undefined };
      refuse(error);
      return true;
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      await checks.stop();
    },
  };
}

function isSame(a: Loaded, b: Loaded): boolean {
  return isDeepStrictEqual(a.config, b.config) && areSameSecrets(a, b);
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
