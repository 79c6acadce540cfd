// Takes up a changed configuration while the worker runs. Its files are compared by content at an interval: Kubernetes replaces a
// symbolic link above them, editors rename a new file over the old one, and events of the file system tell neither reliably.

import { createHash } from "node:crypto";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type App, readConfig } from "../app.ts";
import type { Config } from "../config/config.ts";
import { isTransient } from "../db/connection/errors.ts";
import type { ConfigRefusal } from "../db/jobs/workers.ts";
import { AppError, errorText, systemCode } from "../errors.ts";
import { readRegularFile } from "../files.ts";
import type { ReloadResult } from "../health/metrics.ts";
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
  const config = await readConfig(app, (file) => otherFiles.push(file));
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
  readonly onReload: (result: ReloadResult) => void;
  readonly onRefusalChange: (refusal: ConfigRefusal | undefined) => void;
};

/** How often the content of the files is compared. */
const COMPARE_MS = 2_000;
/** How often a refused configuration is checked again although its files are the same: a secret that it names may be there now. */
const RECHECK_MS = 30_000;

export function openReloader(
  first: Loaded,
  { log, load }: ReloaderDeps,
  { compareMs = COMPARE_MS, recheckMs = RECHECK_MS } = {},
): Reloader {
  let current = first;
  let superseded = new AbortController();
  /** The last one that the worker started with, while it is another than the one in force. */
  let previous: Loaded | undefined;
  let hasStarted = false;
  /** The worker could not start with it. It is not tried again by itself: each attempt ends the work under the one in force. */
  let unusable: Loaded | undefined;
  let refusal: ConfigRefusal | undefined;
  let { contents } = first;
  let checkedMs = performance.now();
  let isRequested = false;
  let checking: Promise<void> | undefined;
  let listener: ReloadListener | undefined;
  let timer: NodeJS.Timeout | undefined;

  function refuse(error: unknown): void {
    const reason = errorText(error);
    if (refusal?.reason === reason) return;
    refusal = { reason, at: refusal?.at ?? new Date() };
    log.error({ reason }, "the changed configuration is refused: the worker goes on with the one before");
    listener?.onReload("refused");
    listener?.onRefusalChange(refusal);
  }

  function endRefusal(): void {
    if (!refusal) return;
    refusal = undefined;
    log.info("the configuration is valid again");
    listener?.onRefusalChange(undefined);
  }

  function take(next: Loaded): void {
    requireUnchangeable(current.config, next.config);
    if (unusable && isSame(unusable, next)) return;
    endRefusal();
    unusable = undefined;
    if (isSame(current, next)) return;
    const before = current;
    // One that was replaced before the worker started with it may be one that it can't use.
    if (hasStarted) previous = before;
    hasStarted = false;
    current = next;
    log.info(describeChange(before.config, next.config), "the configuration has changed and is taken up");
    listener?.onReload("taken");
    superseded.abort();
    superseded = new AbortController();
  }

  async function check(): Promise<void> {
    const isForced = isRequested;
    isRequested = false;
    const found = await readContents(contents.keys());
    const isRecheck = refusal !== undefined && performance.now() - checkedMs >= recheckMs;
    if (!isForced && !isRecheck && isDeepStrictEqual(contents, found)) return;
    checkedMs = performance.now();
    try {
      const next = await load();
      contents = next.contents;
      take(next);
    } catch (error) {
      // A database that is away does not show that the configuration is wrong: the next check tries again.
      if (error instanceof Error && isTransient(error)) return;
      contents = found;
      refuse(error);
    }
  }

  const checkSoon = () => {
    checking ??= check().finally(() => {
      checking = undefined;
      if (isRequested) checkSoon();
    });
  };

  const request = () => {
    isRequested = true;
    checkSoon();
  };

  return {
    current: () => current,
    superseded: () => superseded.signal,
    refusal: () => refusal,
    watch(newListener) {
      listener = newListener;
      timer = setInterval(checkSoon, compareMs);
    },
    complete(config) {
      current = { ...current, config };
    },
    request,
    started() {
      hasStarted = true;
    },
    retry() {
      unusable = undefined;
      request();
    },
    revert(failed, error) {
      if (failed !== current) return true;
      if (previous === undefined) return false;
      unusable = failed;
      current = previous;
      previous = undefined;
      refuse(error);
      return true;
    },
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      isRequested = false;
      await checking;
    },
  };
}

function isSame(a: Loaded, b: Loaded): boolean {
  return isDeepStrictEqual(a.config, b.config) && areSameSecrets(a, b);
}

/** Throws for a change that would need another process. */
function requireUnchangeable(before: Config, after: Config): void {
  const fixed = ({ monitor }: Config) => ({
    "monitor.host": monitor.host,
    "monitor.port": monitor.port,
  });
  const [was, is] = [fixed(before), fixed(after)];
  for (const field of Object.keys(was) as (keyof typeof was)[]) {
    if (was[field] === is[field]) continue;
    throw new AppError(
      "config",
      `${field}: a running worker can't change it from ${was[field]} to ${is[field]}; restart the worker, or undo the change`,
    );
  }
}

/** How many jobs and projects there are now, and how many came and went. */
function describeChange(before: Config, after: Config) {
  const countOf = (named: (config: Config) => readonly { readonly name: string }[]) => {
    const [was, is] = [new Set(named(before).map(({ name }) => name)), new Set(named(after).map(({ name }) => name))];
    return { configured: is.size, added: is.difference(was).size, removed: was.difference(is).size };
  };
  return {
    projects: countOf(({ projects }) => projects),
    exports: countOf(({ exports }) => exports),
    rotations: countOf(({ rotations }) => rotations),
  };
}
