// Computes from the health state the alerts that `status` and the dashboard show, and the notifications to send. Pure.

import type { LastOutcome, SeriesHealth } from "../db/health.ts";
import type { RotationStatus } from "../db/keys/status.ts";
import type { FailureCause } from "../db/usage/failures.ts";
import { needsAttention } from "../keys/plan.ts";
import { counted, instantText } from "../show/format.ts";
import { shellQuoted, truncate } from "../text.ts";
import { DAY_SECONDS, type Day, daysOf } from "../usage/days.ts";
import { seriesText } from "../usage/series.ts";
import type { Alert, AlertPhase, Condition } from "./alert.ts";
import { digested } from "./digests.ts";
import { listAlerts, listConditions } from "./list-alerts.ts";
import { errorReason, type HealthState, type JobHealth, type RotationHealth } from "./state.ts";
import { usageConditions } from "./usage-alerts.ts";

/**
 * There is no alert: every due slice is complete, no run failed, no rotation warns, and no job waits for a worker. What is said of the
 * usage itself, as by budgets, does not matter here: the program works.
 */
export function isWell(state: HealthState): boolean {
  return alertsOf(state).length === 0;
}

export function alertsOf(state: HealthState): readonly Alert[] {
  const { jobs, slices, causes, rotations } = state;
  const { missing, failed, suspect } = slices;
  const noWorker = noWorkerAlert(state);
  const warned = rotations.filter(({ warnings }) => warnings.length > 0).map(({ rotation }) => rotation);
  return [
    // Without any worker every job is overdue for the same reason, so one alert covers them all.
    ...(noWorker ? [noWorker] : jobs.flatMap(overdueAlert)),
    ...refusedConfigs(state).map((text) => ({ name: "config", text, section: "jobs" as const })),
    ...listAlerts(state.lists),
    // A rotation's own warning already says why its run failed.
    ...jobs.filter(({ kind, job }) => kind !== "rotation" || !warned.includes(job)).flatMap(failedRunAlert),
    ...sliceAlert(missing, `${counted(missing, "slice")} missing: due and never read`),
    ...(causes.length > 0
      ? causeAlerts(causes)
      : sliceAlert(failed, `${counted(failed, "slice")} failed: the newest reading went wrong`)),
    ...sliceAlert(suspect, `${counted(suspect, "slice")} suspect: empty where there were numbers, which stay`),
    ...rotations.flatMap(({ rotation, warnings }) => {
      const name = `rotation ${rotation}`;
      return warnings.map((warning) => ({ name, text: `${name}: ${warning}`, section: "keys" as const }));
    }),
  ];
}

/** No alert if another scheduler runs the exports: then no worker has registered the jobs, and none of them needs a worker. */
function noWorkerAlert({ jobs, workers }: HealthState): Alert | undefined {
  if (!jobs.some(({ needsWorker }) => needsWorker)) return undefined;
  if (workers.some(({ recent }) => recent)) return undefined;
  const [last] = workers;
  const seen = last
    ? `the last one, ${last.host} pid ${last.pid}, was seen ${instantText(last.lastSeenAt)}`
    : "none was seen";
  const text = `no worker runs, so nothing is done on schedule: ${seen}; run: usage-export start`;
  return { name: "worker", text, section: "jobs" };
}

/** One text for each worker that goes on with an earlier configuration. */
function refusedConfigs({ workers }: HealthState): readonly string[] {
  return workers.flatMap(({ host, pid, state, refusal }) => {
    if (state !== "live" || !refusal) return [];
    const reason = truncate(refusal.reason.replaceAll(/\s*\n\s*/g, " "), ERROR_LENGTH_MAX * 2);
    const refused = `configuration refused since ${instantText(refusal.at)}`;
    return [`${refused}: the worker ${host} pid ${pid} goes on with the one before; ${reason}`];
  });
}

function configCondition(state: HealthState): Condition {
  const texts = refusedConfigs(state);
  return {
    subject: "config",
    isWrong: texts.length > 0,
    // A worker that is gone, or not seen for minutes, does not show that its configuration is valid now.
    isSilent: !state.workers.some(({ recent }) => recent),
    text: () => (texts.length > 0 ? texts.join("\n") : "The changed configuration is valid and in use."),
  };
}

function overdueAlert({ kind, job, overdueSince }: JobHealth): readonly Alert[] {
  if (!overdueSince) return [];
  const text = `${kind} ${job} is overdue since ${instantText(overdueSince)}: no worker has taken it up`;
  return [{ name: `overdue ${kind} ${job}`, text, section: "jobs" }];
}

function failedRunAlert({ kind, job, failedRun }: JobHealth): readonly Alert[] {
  if (!failedRun?.overCompleteDays) return [];
  const { status, trigger, startedAt, error } = failedRun;
  const went = status === "failed" ? "failed" : "was interrupted";
  const reason = error === null ? "" : `: ${error}`;
  const text = `${kind} ${job} ${went} in its run of ${instantText(startedAt)} (${trigger})${reason}`;
  return [{ name: `${kind} ${job}`, text, section: "runs" }];
}

function sliceAlert(count: number, text: string): readonly Alert[] {
  return count > 0 ? [{ name: "gaps", text, section: "gaps" }] : [];
}

const CAUSES_SHOWN_MAX = 5;
const ERROR_LENGTH_MAX = 200;

function causeAlerts(causes: readonly FailureCause[]): readonly Alert[] {
  const others = causes.slice(CAUSES_SHOWN_MAX).reduce((sum, { slices }) => sum + slices, 0);
  return [
    ...causes.slice(0, CAUSES_SHOWN_MAX).flatMap((cause) => sliceAlert(cause.slices, causeText(cause))),
    ...sliceAlert(others, `${counted(others, "slice")} failed for other reasons`),
  ];
}

/** One line for all failures with the same cause. */
function causeText(cause: FailureCause): string {
  const { since, slices, slicesWithNumbers, series, nextTry } = cause;
  const numbers =
    slicesWithNumbers === 0
      ? "no numbers of these days yet"
      : `last good numbers shown${slicesWithNumbers < slices ? ` for ${slicesWithNumbers} of them` : ""}`;
  const head = headOf(cause);
  const error = truncate(errorReason(cause.error), ERROR_LENGTH_MAX);
  return [
    `${head ?? "readings fail"} since ${instantText(since)}`,
    `${counted(slices, "slice")} of ${series} series failed`,
    ...(nextTry ? [`next try ${instantText(nextTry)}`] : []),
    ...(cause.code === "unauthorized"
      ? [`with a key that works, usage-export export --project ${shellQuoted(cause.project ?? "")} reads them at once`]
      : []),
    numbers,
    // At the end and without quotation marks, because an error may contain any character.
    ...(head === undefined && error !== "" ? [`the newest error: ${error}`] : []),
  ].join("; ");
}

/** Undefined if only the text of the error says what happened. */
function headOf({ code, project, isBillingRefused, error }: FailureCause): string | undefined {
  const status = /the service answered (\d{3})/.exec(error)?.[1];
  // What failed is the command that prints the key: the service was not called.
  if (error.startsWith("the key command ")) return undefined;
  switch (code) {
    case "unavailable":
      return status === undefined ? "service not reachable" : `service not available (${status})`;
    case "rate_limited":
      return `service asks for fewer calls (${status ?? "429"})`;
    case "unauthorized":
      if (isBillingRefused) return `key of project ${project} may not read billing (403): it needs billing:read`;
      return `key of project ${project} refused${status === undefined ? "" : ` (${status})`}`;
    default:
      return undefined;
  }
}

/** What a person should know of a rotation. */
export function rotationWarnings({ failedAttempts, lastError, fallback, fallbackAt }: RotationStatus): string[] {
  return [
    ...(failedAttempts > 0 ? [`${failedAttempts} failed attempts, the last: ${lastError}`] : []),
    ...(needsAttention(failedAttempts) ? ["needs attention: nothing is created until rotate --now"] : []),
    ...(fallback === null ? [] : [`alert (${fallbackAt?.toISOString()}): ${fallback}`]),
  ];
}

// Notifications: about each job, the gaps of each export, each condition of a rotation, and the usage.

export type Notification = {
  /** The condition's. */
  readonly subject: string;
  readonly state: AlertPhase;
  readonly text: string;
  /** Of a digest, the subjects of the conditions that it is about. */
  readonly covers?: readonly string[];
};

/** Every condition, also those that are not wrong now. */
function conditionsOf(state: HealthState): readonly Condition[] {
  return [
    configCondition(state),
    ...state.jobs.flatMap(jobCondition),
    ...state.jobs.flatMap((job) => gapsCondition(job, state)),
    ...state.rotations.flatMap(rotationConditions),
    ...listConditions(state.lists),
    ...usageConditions(state),
  ];
}

/**
 * The notifications to send now: one for each subject whose phase differs from the one that was sent last. `lastSent` has that
 * phase by subject; a subject without an entry counts as "well".
 *
 * So nothing is sent if a job fails again, or if its gaps grow. Each condition of a rotation has a subject of its own: a key may
 * wait weeks for its removal, and meanwhile the refusal of another key must still be sent.
 */
export function notificationsOf(
  state: HealthState,
  lastSent: ReadonlyMap<string, AlertPhase>,
  scrub: (text: string) => string,
): Notification[] {
  const conditions = conditionsOf(state);
  // Nothing has ended that could not be read.
  const areAnomaliesRead = !state.notRead.some(({ kind }) => kind === "anomaly");
  const listed = [...conditions, ...(areAnomaliesRead ? endedConditions(conditions, lastSent) : [])];
  const changes = listed.flatMap((condition) => {
    const { subject, isWrong, isSilent } = condition;
    const phase: AlertPhase = isWrong ? "wrong" : "well";
    return isSilent || phase === (lastSent.get(subject) ?? "well") ? [] : [{ condition, phase }];
  });
  return digested(changes).map(({ subject, phase, text, covers }) => ({
    ...{ subject, state: phase, text: sanitizeText(text(), scrub) },
    ...(covers && { covers }),
  }));
}

/**
 * Conditions that were sent as wrong and are not listed any more, as a person need not watch them. For a budget nothing is sent then: what
 * was sent last holds, so that a backfill, which has the period watched again, does not send the same alarm a second time.
 */
function endedConditions(
  listed: readonly Condition[],
  lastSent: ReadonlyMap<string, AlertPhase>,
): readonly Condition[] {
  const known = new Set(listed.map(({ subject }) => subject));
  const ended = [...lastSent].filter(
    ([subject, phase]) => phase === "wrong" && !known.has(subject) && subject.startsWith("anomaly "),
  );
  return ended.map(([subject]) => ({ subject, isWrong: false, text: () => `${subject}: no longer watched.` }));
}

function jobCondition({ kind, job, outcome }: JobHealth): Condition[] {
  if (!outcome) return [];
  const name = `${kind === "export" ? "Export" : "Rotation"} ${job}`;
  const text = () => outcomeText(name, outcome);
  return [{ subject: `${kind} ${job}`, isWrong: outcome.status === "failed", text }];
}

function outcomeText(
  name: string,
  { status, trigger, startedAt, planned, suspect, failed, error }: LastOutcome,
): string {
  const run = `run of ${instantText(startedAt)} (${trigger})`;
  if (status === "ok") return `${name} works again: its ${run} went well.`;
  const slices = [
    ...(failed > 0 ? [`${failed} of ${counted(planned, "slice")} not read`] : []),
    ...(suspect > 0 ? [`${suspect} of ${counted(planned, "slice")} empty where there were numbers, which stay`] : []),
  ].join(", ");
  const reason = error === null ? "" : ` The first error: ${error}`;
  return `${name} failed in its ${run}${slices === "" ? "" : `: ${slices}`}.${reason}`;
}

/**
 * There is no condition for a job whose newest outcome is failed: the notification about the failure covers its gaps, and gaps that
 * are left are sent once the job works again. There is also none while a job that reads the same series is paused, or has a run in
 * progress or about to start, which may fill the gaps.
 */
function gapsCondition({ kind, job, outcome, series }: JobHealth, state: HealthState): Condition[] {
  if (kind !== "export" || outcome?.status === "failed") return [];
  const readers = state.jobs.filter((other) => other.series.overlaps(series));
  if (readers.some(({ isInProgress, paused }) => isInProgress || paused)) return [];
  const own = state.series.filter(
    ({ isActive, missing, failed, key }) => isActive && missing + failed > 0 && series.has(key),
  );
  return [{ subject: `gaps ${job}`, isWrong: own.length > 0, text: () => gapsText(job, own, state) }];
}

const SERIES_SHOWN_MAX = 3;

/** `own` are the series of the job that have gaps. */
function gapsText(job: string, own: readonly SeriesHealth[], { gaps, gapsLeftOut }: HealthState): string {
  if (own.length === 0) return `Export ${job} has no gaps any more.`;
  const keys = new Set(own.map(({ key }) => key));
  const listed = gaps.filter(({ key }) => keys.has(key));
  const days = [...new Set(listed.flatMap(({ from, to }) => daysOf({ start: from, end: to })))].sort();
  const missing = own.reduce((sum, one) => sum + one.missing, 0);
  const failed = own.reduce((sum, one) => sum + one.failed, 0);
  const series = [...new Set([...listed, ...own].map(seriesText))];
  const others = series.length - SERIES_SHOWN_MAX;
  const older = gapsLeftOut > 0 ? " and before" : "";
  return [
    `Export ${job} has gaps: ${counted(missing + failed, "slice")} of ${daysText(days)}${older}`,
    `(${missing} missing, ${failed} failed), of ${series.slice(0, SERIES_SHOWN_MAX).join(", ")}`,
    ...(others > 0 ? [`and ${others} more series`] : []),
  ]
    .join(" ")
    .concat(".");
}

/** `days` are in order. */
function daysText(days: readonly Day[]): string {
  const [oldest, newest] = [days[0], days.at(-1)];
  return oldest === newest ? `${oldest}` : `${days.length} days from ${oldest} to ${newest}`;
}

/** How many days over its maximum age a key may be: it is replaced on the following night, or a night later if that one fails. */
const LATE_DAYS_MAX = 2;

/** The conditions of a rotation, the most important first; none if the rotation is not configured any more. */
function rotationConditions({ rotation, configured, failedAttempts, lastError, ...row }: RotationHealth): Condition[] {
  if (!configured) return [];
  const { maxAgeDays, retire } = configured;
  const { orphan: orphans, dueForRemoval, longDue } = row.keys;
  const ageDays = Math.floor((row.ageSeconds ?? 0) / DAY_SECONDS);
  const removable = retire === "keep" ? dueForRemoval : longDue;
  const condition = (name: string, isWrong: boolean, wrong: string, well: string): Condition => ({
    subject: `key ${name} ${rotation}`,
    isWrong,
    text: () => `Rotation ${rotation}: ${isWrong ? wrong : well}`,
  });
  return [
    condition(
      "attention",
      needsAttention(failedAttempts),
      `${counted(failedAttempts, "attempt")} failed in a row, and nothing is created until somebody runs "rotate --now". The last error: ${lastError}`,
      "it creates keys again; nobody has to act any more.",
    ),
    condition(
      "fallback",
      row.fallback !== null,
      'the service refused the key in use, and the one before it was used in its place; see "keys".',
      "the key in use is not refused any more.",
    ),
    condition(
      "age",
      ageDays > maxAgeDays + LATE_DAYS_MAX,
      `the key in use is ${ageDays} days old and should have been replaced after ${maxAgeDays}.`,
      "the key in use is not too old any more.",
    ),
    condition(
      "orphans",
      orphans > 0,
      `${counted(orphans, "key")} may exist at the service whose secret is lost: "keys" shows the comment to find and remove it by.`,
      "no key with a lost secret is left.",
    ),
    condition(
      "removal",
      removable > 0,
      retire === "keep"
        ? `${counted(removable, "key")} can be removed at the service: "keys" shows which.`
        : `${counted(removable, "key")} due for removal, and not deleted: "keys" says why.`,
      "no key is left to be removed at the service.",
    ),
  ];
}

/** Appended to every text: who sent it, because several may write to one channel, and where to look. */
export function senderSuffix(publicUrl: string | undefined, host: string): string {
  if (publicUrl === undefined) return ` — usage-export on ${host}`;
  return ` — usage-export at ${new URL(publicUrl).host}, ${publicUrl}`;
}

const NOTIFICATION_LENGTH_MAX = 500;

/**
 * The text as it is sent: on one line, without secrets, and not too long. The three characters that Slack interprets are escaped,
 * because an error may quote anything, and `<!channel>` would notify everybody. Secrets are removed first: once cut or escaped, they
 * would not be found.
 */
function sanitizeText(text: string, scrub: (text: string) => string): string {
  const line = truncate(scrub(text).replaceAll(/\s+/g, " "), NOTIFICATION_LENGTH_MAX);
  // In some chats @channel would notify everybody too: an invisible character after the @ prevents that.
  return line.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("@", "@\u200b");
}
