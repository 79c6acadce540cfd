// Sends notifications to the webhook when alerts open or are resolved, and pings the dead man's switch while all is well.

import os from "node:os";
import { jobsOf } from "../config/config.ts";
import { databaseNow } from "../db/connection/database.ts";
import { isConnectionError } from "../db/connection/errors.ts";
import { readSnapshot, type Tx } from "../db/connection/transaction.ts";
import { type StoredJob, storedJobs } from "../db/jobs/jobs.ts";
import { lastOutcomes, runningRuns } from "../db/jobs/runs.ts";
import { rotationCounts } from "../db/keys/status.ts";
import { claimNotification, type LastSent, markSent, readLastSent, releaseNotification } from "../db/notifications.ts";
import { dueSlices, failedSlices } from "../db/usage/coverage.ts";
import { seriesIdOf } from "../db/usage/series.ts";
import { errorText } from "../errors.ts";
import type { Receivers } from "../jobs/monitor-secrets.ts";
import { needsAttention } from "../keys/plan.ts";
import { overdueSince, waitingSince } from "../schedule/due.ts";
import { DAY_SECONDS } from "../usage/days.ts";
import { type ExportJob, seriesOf } from "../usage/plan.ts";
import type { Series } from "../usage/series.ts";
import type { WorkerContext } from "../worker/context.ts";
import {
  type AlertState,
  type JobGaps,
  type Notification,
  notificationsOf,
  type RotationHealth,
  senderSuffix,
} from "./alerts.ts";
import { readHealthState } from "./read-health.ts";
import { isWell } from "./state.ts";
import { ping, postText, type Receiver, type WebhookLimits } from "./webhook.ts";

export type Notifier = {
  /** Never throws. Takes no longer than a slow receiver is given, twice. */
  readonly tick: () => Promise<void>;
};

type Target = Parameters<WorkerContext["metrics"]["noticed"]>[0];

/** What may go wrong, and how the log says it. */
const PROBLEM_MESSAGES = {
  decide: "no notices: what is the case could not be read",
  webhook: "notice not sent, to be tried again",
  dead_man: "nobody told that all is well",
} as const;

export type NotifierContext = Pick<WorkerContext, "db" | "config" | "ids"> & {
  readonly app: Pick<WorkerContext["app"], "log" | "scrubber">;
  readonly metrics: Pick<WorkerContext["metrics"], "noticed">;
};

/** After so long nothing more is sent in this tick: the rest is in the next. */
const SENDING_MS_MAX = 5_000;
const MINUTE_MS = 60_000;

/** `stop` ends what is being sent. */
export function openNotifier(
  world: NotifierContext,
  { webhook, deadMan }: Receivers,
  stop: AbortSignal,
  limits: WebhookLimits = {},
): Notifier {
  const { app, db, config, metrics } = world;
  const scrub = (text: string) => app.scrubber.scrub(text);
  /** Of what the log knows, and need not hear again. */
  const failing = new Set<keyof typeof PROBLEM_MESSAGES>();
  const signed = senderSuffix(config.monitor.publicUrl, os.hostname());
  let pingedMinute: number | undefined;

  async function sendNotices(to: Receiver): Promise<void> {
    const startedMs = performance.now();
    // Before the situation: what somebody says meanwhile can't be claimed with it.
    const said = await readLastSent(db);
    const states = new Map([...said].map(([subject, { state }]) => [subject, state]));
    for (const notice of notificationsOf(await readAlertState(world), states, scrub)) {
      if (stop.aborted || performance.now() - startedMs > SENDING_MS_MAX) return;
      await sendNotice(to, notice, said.get(notice.subject));
    }
  }

  async function sendNotice(to: Receiver, notice: Notification, said: LastSent | undefined): Promise<void> {
    const claim = await claimNotification(db, notice.subject, said);
    if (claim === undefined) return;
    if (await sent("webhook", () => postText(to, `${notice.text}${signed}`, stop, limits))) {
      await markSent(db, notice, claim);
      app.log.info({ subject: notice.subject, state: notice.state }, "notice sent");
    } else {
      await releaseNotification(db, notice.subject, claim);
    }
  }

  /** At most once a minute, however often a tick comes. */
  async function pingWhileWell(to: Receiver): Promise<void> {
    const minute = Math.floor(Date.now() / MINUTE_MS);
    if (minute === pingedMinute || !isWell(await readHealthState(db, config))) return;
    pingedMinute = minute;
    await sent("dead_man", () => ping(to, stop, limits));
  }

  async function sent(target: Target, send: () => Promise<void>): Promise<boolean> {
    try {
      await send();
    } catch (error) {
      if (stop.aborted) return false;
      metrics.noticed(target, "failed");
      tellOnce(target, error);
      return false;
    }
    metrics.noticed(target, "sent");
    if (failing.delete(target)) app.log.info({ to: target }, "reached again");
    return true;
  }

  function tellOnce(what: keyof typeof PROBLEM_MESSAGES, error: unknown): void {
    // The outage of the database is already reported.
    if (!failing.has(what) && !isConnectionError(error))
      app.log.warn({ reason: errorText(error) }, PROBLEM_MESSAGES[what]);
    failing.add(what);
  }

  return {
    async tick() {
      try {
        if (webhook) await sendNotices(webhook);
        if (deadMan && !stop.aborted) await pingWhileWell(deadMan);
        failing.delete("decide");
      } catch (error) {
        if (!stop.aborted) tellOnce("decide", error);
      }
    },
  };
}

// Reads what people are told of, as it is at one moment.

type AlertContext = Pick<WorkerContext, "db" | "config" | "ids">;

async function readAlertState(world: AlertContext): Promise<AlertState> {
  return readSnapshot(world.db, async (tx) => {
    const gaps = await jobGaps(tx, world);
    const broken = new Set(gaps.flatMap(({ job, failed }) => (failed ? [job] : [])));
    return {
      jobs: await lastOutcomes(
        tx,
        jobsOf(world.config).map(({ kind, name }) => ({ kind, name, whole: kind === "rotation" || !broken.has(name) })),
      ),
      gaps,
      rotations: await rotationHealth(tx, world),
    };
  });
}

type JobSeries = {
  readonly job: ExportJob;
  readonly series: ReadonlyMap<number, Series>;
  readonly inProgress: boolean;
};

/** Whether a slice of a job is failed is known even while its gaps can't be told. */
async function jobGaps(tx: Tx, { config, ids }: AlertContext): Promise<(JobGaps & { readonly failed: boolean })[]> {
  const now = await databaseNow(tx);
  const stored = await storedJobs(tx);
  const jobs: JobSeries[] = [];
  for (const job of config.exports) {
    const series = new Map(seriesOf(job).map((one) => [seriesIdOf(ids, one), one]));
    jobs.push({ job, series, inProgress: await isInProgress(tx, job, stored, now) });
  }
  const seriesIds = jobs.flatMap(({ series }) => [...series.keys()]);
  const due = await dueSlices(tx, seriesIds);
  const missing = due.flatMap(({ seriesId, day, status }) => (status === "missing" ? [{ seriesId, day, status }] : []));
  const notRead = [...missing, ...(await failedSlices(tx, seriesIds))];
  return jobs.map(({ job, series }) => {
    // Whatever reads one of its series may be about to read its gaps.
    const untold = jobs.some((other) => other.inProgress && [...other.series.keys()].some((id) => series.has(id)));
    const slices = notRead.flatMap(({ seriesId, day, status }) => {
      const one = series.get(seriesId);
      return one ? [{ series: `${one.project.name} / ${one.grouping} / ${one.filter.name}`, day, status }] : [];
    });
    const failed = slices.some(({ status }) => status === "failed");
    return { job: job.name, slices: untold ? undefined : slices, failed };
  });
}

/** A run of it is under way, or begins with the next tick; or a person paused it, and knows. */
async function isInProgress(tx: Tx, job: ExportJob, stored: readonly StoredJob[], now: Date): Promise<boolean> {
  const known = stored.find(({ kind, name }) => kind === "export" && name === job.name);
  if (known?.pause) return true;
  if (waitingSince(job, known, now) && !overdueSince(job, known, now)) return true;
  return (await runningRuns(tx, "export", job.name)).length > 0;
}

async function rotationHealth(tx: Tx, { config }: AlertContext): Promise<RotationHealth[]> {
  const rows = await rotationCounts(tx);
  return config.rotations.flatMap(({ name, maxAgeDays, retire }) => {
    const row = rows.find(({ rotation }) => rotation === name);
    if (!row) return [];
    const { failedAttempts, lastError, orphan, dueForRemoval, longDueForRemoval, fallback, ageSeconds } = row;
    return {
      ...{ rotation: name, maxAgeDays, retire, failedAttempts, lastError, dueForRemoval, fallback },
      needsAttention: needsAttention(failedAttempts),
      longDueForRemoval,
      orphans: orphan,
      ageDays: ageSeconds === null ? null : Math.floor(ageSeconds / DAY_SECONDS),
    };
  });
}
