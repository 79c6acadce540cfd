// Finds the conditions that a person should know of. `status` and the pages show them, the metrics have a sample for each, and notifications
// are sent when one begins and when it ends. Pure.

import type { OpenAnomaly } from "../db/anomalies.ts";
import type { CallPause } from "../db/calling-processes.ts";
import type { StoredWorker } from "../db/jobs/jobs.ts";
import type { StoredList } from "../db/projects.ts";
import type { FailureCause } from "../db/usage/failures.ts";
import { attemptsText, needsAttention } from "../keys/rotation-plan.ts";
import { budgetPeriod, budgetTitle, counted, instantText, metricName, roundedText, spentText } from "../show/format.ts";
import { firstNames, present, shellQuoted, truncate } from "../text.ts";
import type { BudgetUse } from "../usage/budgets.ts";
import { RETRIED_CODES } from "../usage/export-plan.ts";
import type { ProjectHealth, SliceCounts } from "./coverage.ts";
import type { JobHealth } from "./jobs.ts";
import { fallbackText, type RotationHealth } from "./keys.ts";

export type HealthFacts = {
  /** By the database's clock. */
  readonly readAt: Date;
  readonly callPauses: readonly CallPause[];
  /** The exports first. */
  readonly jobs: readonly JobHealth[];
  /** The worker that was seen most recently comes first. */
  readonly workers: readonly StoredWorker[];
  /** One for each project and source. */
  readonly projects: readonly ProjectHealth[];
  readonly slices: SliceCounts;
  /** Why slices are failed; the cause with the most slices comes first. */
  readonly causes: readonly FailureCause[];
  /** A rotation for many projects has an entry for each of them. */
  readonly rotations: readonly RotationHealth[];
  /** What is stored about each list of projects that discovery reads. */
  readonly lists: readonly StoredList[];
  /** Budgets in their current periods, and in earlier ones that may still change or have just changed. */
  readonly budgets: readonly BudgetUse[];
  /** One for each project and filter with unusual days; empty if `anomalies` is off. */
  readonly anomalies: readonly OpenAnomaly[];
  /** Why budgets and anomalies could not be read. Their lists are empty then. */
  readonly notRead?: string;
};

type Traits = {
  readonly severity: "critical" | "warning";
  /** The section of the pages with the details. */
  readonly section: "jobs" | "runs" | "gaps" | "keys" | "budgets" | "anomalies";
  /** Nothing is broken: `status` lists it and still exits with 0. */
  readonly isReminder?: boolean;
  /** It is shown but never notified, because it may end by itself within minutes, or may change every day. */
  readonly isQuiet?: boolean;
};

export const TRAITS = {
  worker: { severity: "critical", section: "jobs", isQuiet: true },
  overdue: { severity: "warning", section: "jobs", isQuiet: true },
  config: { severity: "warning", section: "jobs" },
  projects: { severity: "warning", section: "jobs" },
  export: { severity: "warning", section: "runs" },
  rotation: { severity: "warning", section: "runs" },
  missing: { severity: "warning", section: "gaps" },
  failed: { severity: "warning", section: "gaps" },
  suspect: { severity: "warning", section: "gaps" },
  "key attempts": { severity: "warning", section: "keys" },
  "key attention": { severity: "critical", section: "keys" },
  "key fallback": { severity: "critical", section: "keys" },
  "key age": { severity: "warning", section: "keys" },
  "key orphans": { severity: "warning", section: "keys", isReminder: true },
  "key removal": { severity: "warning", section: "keys", isReminder: true },
  budget: { severity: "warning", section: "budgets", isReminder: true },
  "budget forecast": { severity: "warning", section: "budgets", isReminder: true, isQuiet: true },
  anomaly: { severity: "warning", section: "anomalies", isReminder: true },
  unread: { severity: "warning", section: "budgets", isReminder: true, isQuiet: true },
} as const satisfies Readonly<Record<string, Traits>>;

type ConditionName = keyof typeof TRAITS;

export type Condition = Pick<Traits, "severity" | "section"> & {
  readonly name: ConditionName;
  /** What it is about, named as in the configuration. All replicas find the same subject, so only one of them sends the notification. */
  readonly subject: string;
  /** False for a reminder. */
  readonly isWrong: boolean;
  /** What has happened, and the next step. */
  readonly text: string;
  readonly since: Date | null;
  readonly isQuiet: boolean;
};

/** A condition before merging. `project` is set for a rotation for many projects, each of which may have the condition. */
type Found = Condition & { readonly project?: string | null };

function condition(name: ConditionName, subject: string, text: string, more: Partial<Found> = {}): Found {
  const { severity, section, isReminder = false, isQuiet = false }: Traits = TRAITS[name];
  return { name, subject, severity, isWrong: !isReminder, text, since: null, section, isQuiet, ...more };
}

/** Quotes a name with a space or a quote: otherwise two different lists of names could make the same subject. */
function wordInSubject(name: string): string {
  return /^[^\s"]+$/.test(name) ? name : JSON.stringify(name);
}

export function conditionsOf(facts: HealthFacts): readonly Condition[] {
  const worker = workerCondition(facts);
  const rotations = facts.rotations.flatMap(rotationConditions);
  // The failed attempts of these rotations explain their failed runs, too.
  const failingRotations = new Set(
    rotations.flatMap(({ name, subject }) => (name === "key attempts" || name === "key attention" ? subject : [])),
  );
  const found = present([
    worker,
    // Without any worker every job is overdue for the same reason, so one condition covers them all.
    ...(worker ? [] : facts.jobs.map(overdueCondition)),
    configCondition(facts),
    ...facts.lists.map(listCondition),
    ...facts.jobs.filter(({ kind, job }) => kind === "export" || !failingRotations.has(job)).map(runCondition),
    ...sliceConditions(facts),
    ...rotations,
    facts.notRead !== undefined &&
      condition("unread", "", `budgets and anomalies: not read, as reading them failed: ${facts.notRead}`),
    ...facts.budgets.map(budgetCondition),
    ...facts.anomalies.map(anomalyCondition),
  ]);
  return mergeFound(found, facts);
}

/** Merges the same condition in many projects of a rotation into one, with the earliest beginning. A condition without a project is not merged. */
function mergeFound(found: readonly Found[], { jobs }: HealthFacts): readonly Condition[] {
  const alike = Map.groupBy(found, (one) => (one.project == null ? one : `${one.name} ${one.subject}`));
  return [...alike.values()].map((members) => {
    const { project, ...first } = members.reduce((a, b) => (Number(b.since) < Number(a.since) ? b : a));
    if (project == null) return first;
    const names = members.map((one) => one.project ?? "");
    const total = jobs.find(({ kind, job }) => kind === "rotation" && job === first.subject)?.projects ?? names.length;
    return { ...first, text: `${first.text}; in ${names.length} of ${total} projects (${firstNames(names, 3)})` };
  });
}

/** Jobs of another scheduler are not registered, and need no worker. `recent`: until two minutes after a worker's last heartbeat or its stop. */
function workerCondition({ jobs, workers }: HealthFacts): Found | undefined {
  if (!jobs.some(({ needsWorker }) => needsWorker) || workers.some(({ recent }) => recent)) return undefined;
  const [last] = workers;
  const seen = last
    ? `the last one, ${last.host} pid ${last.pid}, was seen ${instantText(last.lastSeenAt)}`
    : "none was seen";
  const text = `no worker runs, so nothing is done on schedule: ${seen}; run: usage-export start`;
  return condition("worker", "", text, { since: last?.lastSeenAt ?? null });
}

function overdueCondition({ kind, job, overdueSince }: JobHealth): Found | undefined {
  if (!overdueSince) return undefined;
  const text = `${kind} ${job} has been overdue since ${instantText(overdueSince)}: no worker has taken it up`;
  return condition("overdue", `${kind} ${job}`, text, { since: overdueSince });
}

const ERROR_LENGTH_MAX = 200;

function configCondition({ workers }: HealthFacts): Found | undefined {
  const refused = workers.flatMap(({ state, refusal, ...worker }) =>
    state === "live" && refusal ? { ...worker, ...refusal } : [],
  );
  const texts = refused.map(({ host, pid, reason, at }) => {
    const why = truncate(reason.replaceAll(/\s*\n\s*/g, " "), ERROR_LENGTH_MAX * 2);
    return `configuration refused since ${instantText(at)}: the worker ${host} pid ${pid} keeps the previous one; ${why}`;
  });
  return refused[0] && condition("config", "", texts.join("; "), { since: refused[0].at });
}

function listCondition(list: StoredList): Found | undefined {
  const { keyName, projects, waiting: missing, waitingSince: missingSince, error, failingSince } = list;
  if (error !== null && failingSince !== null) {
    const kept = `${counted(projects, "project")} of the last list are exported; new ones are not until a list can be read`;
    const text = `the projects of ${keyName} could not be listed since ${instantText(failingSince)}: ${kept}; ${truncate(error, ERROR_LENGTH_MAX)}`;
    return condition("projects", wordInSubject(keyName), text, { since: failingSince });
  }
  if (missing === 0 || missingSince === null) return undefined;
  const text = `${missing} of ${projects} projects of ${keyName} have been missing from the list since ${instantText(missingSince)}, more than half, so the list is in doubt: they are exported until a list that is read an hour or more later lacks them, too, or until a person runs check --confirm-projects`;
  return condition("projects", wordInSubject(keyName), text, { since: missingSince });
}

/** Reports a failed run that no other condition explains. */
function runCondition({ kind, job, failedRun }: JobHealth): Found | undefined {
  if (!failedRun || failedRun.isExplained) return undefined;
  const { status, startedAt, trigger, error } = failedRun;
  const what = status === "failed" ? "failed" : "was interrupted";
  const text = `${kind} ${job} ${what} in its run of ${instantText(startedAt)} (${trigger})${error === null ? "" : `: ${error}`}`;
  return condition(kind, job, text, { since: startedAt });
}

const CAUSES_SHOWN_MAX = 5;
const SHORT_OUTAGE_MS_MAX = 15 * 60_000;
const REQUEST_DETAILS = / \((?:\d+ attempts|request id [^)]*)\)/g;
const UNKNOWN_CAUSE = "readings fail";

/** While an export runs or is about to begin, no notification is sent about missing and suspect days: the export may read them. */
function sliceConditions({ slices, causes, jobs, projects, readAt }: HealthFacts): readonly Found[] {
  const isQuiet = jobs.some(({ kind, mayReadMissing }) => kind === "export" && mayReadMissing);
  const projectsWith = (status: "missing" | "suspect") =>
    counted(new Set(projects.flatMap((one) => (one[status] > 0 ? one.projectId : []))).size, "project");
  const missing = `usage of ${projectsWith("missing")} was due and never read: usage-export status says which`;
  const suspect = `usage of ${projectsWith("suspect")} is in doubt: the newest answer was not believed, and earlier numbers stay`;
  const shown = causes.slice(0, CAUSES_SHOWN_MAX);
  const otherSlices = slices.failed - shown.reduce((sum, cause) => sum + cause.slices, 0);
  return present([
    slices.missing > 0 && condition("missing", "", missing, { isQuiet }),
    ...shown.map((cause) => {
      const { since, code, isRetried } = cause;
      const isShort = Number(readAt) - Number(since) < SHORT_OUTAGE_MS_MAX;
      // What fails in a short outage is read again within minutes.
      const endsSoon = isShort && isRetried && RETRIED_CODES.includes(code ?? "");
      return condition("failed", code ?? "other", causeText(cause), { since, isQuiet: endsSoon });
    }),
    otherSlices > 0 && condition("failed", "other", `${counted(otherSlices, "reading")} failed for other reasons`),
    slices.suspect > 0 && condition("suspect", "", suspect, { isQuiet }),
  ]);
}

function causeText(cause: FailureCause): string {
  const { since, slices, slicesWithNumbers, days, projects, isRetried } = cause;
  const where = slicesWithNumbers < slices ? " where there are some" : "";
  const shown = slicesWithNumbers === 0 ? "no numbers are shown" : `older numbers are shown${where}`;
  const title = causeTitle(cause);
  const error = truncate(cause.error.replaceAll(REQUEST_DETAILS, ""), ERROR_LENGTH_MAX);
  return present([
    `${title}, first seen ${instantText(since)}: ${counted(days, "day")} of ${counted(projects, "project")} could not be read, so ${shown}`,
    isRetried && "the worker tries again",
    cause.code === "unauthorized" &&
      `with a key that works, usage-export export --project ${shellQuoted(cause.project ?? "")} reads them at once`,
    // The error stands at the end and without quotation marks, because it may contain any character.
    title === UNKNOWN_CAUSE && error !== "" && `the newest error: ${error}`,
  ]).join("; ");
}

/** "the service is failing (503)" */
export function causeTitle({ code, project, isBillingRefused, error }: FailureCause): string {
  // The command that prints the key failed, so the service was not called.
  if (error.startsWith("the key command ")) return UNKNOWN_CAUSE;
  const status = /the service answered (\d{3})/.exec(error)?.[1];
  const answer = status === undefined ? "" : ` (${status})`;
  if (code === "unavailable") return answer ? `the service is failing${answer}` : "the service is not reachable";
  if (code === "rate_limited") return `the service asks for fewer calls${answer}`;
  if (code !== "unauthorized") return UNKNOWN_CAUSE;
  return isBillingRefused
    ? `the API key of ${project} lacks billing:read, so its billing is refused${answer}`
    : `the service refuses the API key of ${project}${answer}`;
}

/** How many days over its maximum age a key may be: it is replaced on the following night, or a night later if that one fails. */
const LATE_DAYS_MAX = 2;

function rotationConditions(row: RotationHealth): readonly Found[] {
  const { rotation, project, configured, ageDays, failedAttempts, keys, fallback, fallbackAt } = row;
  // Nobody could end the conditions of a rotation that is gone from the configuration.
  if (!configured) return [];
  const { maxAgeDays, retire } = configured;
  const ofRotation = (name: ConditionName, text: string, since: Date | null = null) =>
    condition(name, rotation, `rotation ${rotation}: ${text}`, { project, since });
  const late = `the key in use is ${counted(ageDays ?? 0, "day")} old and should have been replaced after ${maxAgeDays}: rotate --dry-run says what is in the way`;
  const orphans = `${counted(keys.orphan, "key")} whose secret is lost may exist at the service: "keys" shows the comment to find and remove it by`;
  const removal =
    retire === "keep"
      ? 'can be removed at the service: "keys" shows which'
      : 'due for removal, and not deleted: "keys" says why';
  return present([
    failedAttempts > 0 &&
      ofRotation(needsAttention(failedAttempts) ? "key attention" : "key attempts", attemptsText(row)),
    fallback !== null && ofRotation("key fallback", fallbackText(row), fallbackAt),
    (ageDays ?? 0) > maxAgeDays + LATE_DAYS_MAX && ofRotation("key age", late),
    keys.orphan > 0 && ofRotation("key orphans", orphans),
    keys.dueForRemoval > 0 && ofRotation("key removal", `${counted(keys.dueForRemoval, "key")} ${removal}`),
  ]);
}

/** The highest threshold reached, or a forecast overrun. The threshold is in the subject, so each is notified once per period. */
function budgetCondition(use: BudgetUse): Found | undefined {
  const subject = `${wordInSubject(use.name)} ${budgetPeriod(use)}`;
  const threshold = use.reached.at(-1);
  if (threshold !== undefined) {
    const text = `budget ${budgetTitle(use)} reached ${threshold}%: ${spentText(use)}`;
    const severity = Number(threshold) >= 100 ? "critical" : "warning";
    // There is no notification about a period that had ended before the budget was stored.
    return condition("budget", `${subject} ${threshold}`, text, { severity, isQuiet: use.isBeforeStored });
  }
  if (use.isOver || Number(use.forecastPercent ?? 0) <= 100) return undefined;
  const text = `budget ${budgetTitle(use)} will probably be exceeded: ${spentText(use)}`;
  return condition("budget forecast", subject, text);
}

/** "unusual usage of production on 2026-03-17: requests: 12,345, usually 3,100 to 4,900" */
function anomalyCondition(anomaly: OpenAnomaly): Found {
  const { project, filter, unfiltered, day, daysBefore, metric, low, high } = anomaly;
  const name = unfiltered ? project : `${project} (filter ${filter})`;
  const subject = [wordInSubject(project), ...(unfiltered ? [] : [wordInSubject(filter)])].join(" ");
  const amount = `${roundedText(anomaly.amount)}${anomaly.isFinal ? "" : ", and may still change"}`;
  const text = `${metricName(metric)}: ${amount}, usually ${roundedText(low)} to ${roundedText(high)}`;
  const more = daysBefore > 0 ? `; also ${counted(daysBefore, "day")} before it` : "";
  return condition("anomaly", subject, `unusual usage of ${name} on ${day}: ${text}${more}`);
}
