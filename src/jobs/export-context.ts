// The opened resources that commands and workers share, as types. jobs/open-context.ts opens them.

import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import type { FetchNumbers } from "../db/usage/fetch-numbers.ts";
import type { SeriesIds } from "../db/usage/series.ts";
import type { RunWriter } from "../db/usage/writer.ts";
import type { RotationJob } from "../keys/policy.ts";
import type { MasterKeys } from "../keys/seal.ts";
import type { Secret } from "../secret.ts";
import type { Service } from "../service/service.ts";
import type { Window } from "../usage/days.ts";
import type { Dialect } from "../usage/dimensions.ts";
import type { UsageRequest } from "../usage/plan.ts";
import type { Project } from "../usage/series.ts";

/** What calls to the service need. */
export type ServiceContext<Db extends Database | undefined = Database | undefined> = {
  readonly app: App;
  readonly config: Config;
  /** Undefined only in `check`, which checks the projects also while the database can't be reached. */
  readonly db: Db;
  readonly service: Service;
  readonly keys: KeyRing;
  readonly dialects: Dialects;
  readonly groupings: GroupingCheck;
};

export type RotationContext = Pick<ServiceContext<Database>, "app" | "db" | "service" | "keys"> & {
  readonly masterKeys: MasterKeys;
};

/** Shared by all runs of a process, so that concurrent requests are fetched and stored in common batches. */
export type ExportContext = ServiceContext<Database> & {
  readonly ids: SeriesIds;
  /** Of projects that were discovered just now, by their ids: the days before today that are read once. */
  readonly firstDays: ReadonlyMap<string, Window>;
  readonly fetchNumbers: FetchNumbers;
  readonly writer: RunWriter;
};

export type KeyRing = {
  /** The name of the key that a project is called with. Undefined if the project has none. */
  readonly nameOf: (project: Project) => string | undefined;
  /**
   * Calls with the project's key. If the service refuses the key itself (401), calls once more with another key: with its
   * replacement, if the key file or the ledger has one by now; otherwise, if the key is a rotation's, with the key before it.
   */
  readonly use: <T>(project: Project, call: (key: Secret) => Promise<T>) => Promise<T>;
  /**
   * Calls with the key that creates and deletes the keys of a rotation. If that is the project's own key, every known key of the
   * project is tried, also the one that `first` configures (the key in use until the rotation has made one): otherwise a refused
   * key could not be replaced.
   */
  readonly useToRotate: <T>(
    job: Pick<RotationJob, "name" | "project">,
    call: (key: Secret) => Promise<T>,
  ) => Promise<T>;
};

/** A dialect is the set of parameter names that a version of the service understands. */
export type Dialects = {
  readonly forRequest: (request: UsageRequest) => Promise<Dialect>;
  /** Called after `fits` was false for dialect `used`. Returns the other dialect if a probe finds that the service speaks it. */
  readonly alternative: (request: UsageRequest, used: Dialect) => Promise<Dialect | undefined>;
  /** False if the request groups by model and the answer has rows, but none with a model: the service did not understand the grouping. */
  readonly fits: (request: UsageRequest, answer: unknown) => boolean;
  /**
   * Probes even if the dialect is known. With `windowed` the requests have a start and an end, as those of an export with a window.
   * Undefined if the project has no usage that shows the dialect.
   */
  readonly probe: (project: Project, windowed: boolean) => Promise<Dialect | undefined>;
};

export type GroupingCheck = {
  /**
   * Throws `bad_answer` if the service ignores groupings: every row of the answer has null as its group, and `ask`, which requests the
   * same usage by other dimensions, gets only such rows, too. Errors of `ask` are passed on.
   */
  readonly require: (
    request: UsageRequest,
    answer: unknown,
    ask: (other: UsageRequest) => Promise<unknown>,
  ) => Promise<void>;
};
