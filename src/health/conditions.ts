// The one list of conditions that a person should know of, computed from the health state. `status` and the pages show those that are
// wrong, notifications are its difference to what was sent, and the metrics have a gauge of it. Pure.

import type { LastOutcome } from "../db/health.ts";
import type { StoredList } from "../db/projects.ts";
import { counted, instantText } from "../show/format.ts";
import { truncate } from "../text.ts";
import { type Condition, type ConditionName, nameWord, type StateToJudge } from "./condition.ts";
import { coverageConditions } from "./coverage-conditions.ts";
import { rotationConditions } from "./rotation-conditions.ts";
import type { HealthState, JobHealth } from "./state.ts";
import { usageConditions } from "./usage-conditions.ts";

/** Every condition, also those that are not wrong now. */
export function conditionsOf(state: StateToJudge): readonly Condition[] {
  const rotations = state.rotations.flatMap(rotationConditions);
  // The warning of a rotation already says why its run failed.
  const warned = new Set(
    rotations.flatMap(({ isWrong, section, subject }) => (isWrong && section === "keys" ? subject : [])),
  );
  const worker = workerCondition(state);
  return [
    worker,
    // Without any worker every job is overdue for the same reason, so one condition covers them all.
    ...(worker.isWrong ? [] : state.jobs.map(overdueCondition)),
    configCondition(state),
    ...state.lists.map(listCondition),
    ...state.jobs.flatMap((job) => runConditions(job, job.kind === "rotation" && warned.has(job.job))),
    ...coverageConditions(state),
    ...rotations,
    ...usageConditions(state),
  ];
}

/** Conditions that are about the usage, or that wait for a person while everything works: `status` lists them and ends with 0. */
const REMINDERS: ReadonlySet<ConditionName> = new Set([
  "budget",
  "budget forecast",
  "anomaly",
  "unread",
  "key orphans",
  "key removal",
]);

/** What is wrong now, with the part of it for which `status` ends with 1. */
export function problemsOf(state: StateToJudge) {
  const shown = conditionsOf(state).filter(({ isWrong, told }) => isWrong && (told === undefined || told === "shown"));
  const isReminder = ({ name }: Condition) => REMINDERS.has(name);
  return { shown, faults: shown.filter((one) => !isReminder(one)), reminders: shown.filter(isReminder) };
}

/**
 * Every due slice is complete, no run failed, no rotation warns, and no job waits for a worker. The usage itself does not matter here: the
 * program works.
 */
export function isWell(state: HealthState): boolean {
  return problemsOf(state).faults.length === 0;
}

/** Not wrong if another scheduler runs the exports: then no worker has registered the jobs, and none of them needs a worker. */
function workerCondition({ jobs, workers }: StateToJudge): Condition {
  const [last] = workers;
  const seen = last
    ? `the last one, ${last.host} pid ${last.pid}, was seen ${instantText(last.lastSeenAt)}`
    : "none was seen";
  return {
    ...{ name: "worker", subject: "", severity: "critical", section: "jobs" },
    isWrong: jobs.some(({ needsWorker }) => needsWorker) && !workers.some(({ recent }) => recent),
    text: `no worker runs, so nothing is done on schedule: ${seen}; run: usage-export start`,
    since: last?.lastSeenAt ?? null,
    // Notifications are sent by workers.
    told: "shown",
  };
}

/** A worker that has just started plans what is overdue, so nothing is sent about it. */
function overdueCondition({ kind, job, overdueSince }: JobHealth): Condition {
  return {
    ...{ name: "overdue", subject: `${kind} ${job}`, severity: "warning", section: "jobs", told: "shown" },
    isWrong: overdueSince !== undefined,
    text: `${kind} ${job} is overdue since ${overdueSince && instantText(overdueSince)}: no worker has taken it up`,
    since: overdueSince ?? null,
  };
}

const ERROR_LENGTH_MAX = 200;

/** Wrong while a worker goes on with an earlier configuration. */
function configCondition({ workers }: StateToJudge): Condition {
  const refusals = workers.flatMap(({ host, pid, state, refusal }) =>
    state === "live" && refusal ? [{ who: `${host} pid ${pid}`, ...refusal }] : [],
  );
  const texts = refusals.map(({ who, at, reason }) => {
    const why = truncate(reason.replaceAll(/\s*\n\s*/g, " "), ERROR_LENGTH_MAX * 2);
    return `configuration refused since ${instantText(at)}: the worker ${who} goes on with the one before; ${why}`;
  });
  return {
    ...{ name: "config", subject: "", severity: "warning", section: "jobs" },
    isWrong: texts.length > 0,
    text: texts.length > 0 ? texts.join("; ") : "The changed configuration is valid and in use.",
    since: refusals[0]?.at ?? null,
    // A worker that is gone, or not seen for minutes, does not show that its configuration is valid now.
    told: workers.some(({ recent }) => recent) ? undefined : "nowhere",
  };
}

/** One for a list by which projects are discovered, however many projects it has. */
function listCondition({ list, projects, waiting, waitingSince, error, failingSince }: StoredList): Condition {
  const about = { name: "projects", subject: nameWord(list), severity: "warning", section: "jobs" } as const;
  if (error !== null && failingSince !== null) {
    const kept = `${counted(projects, "project")} of the last list are exported, and new ones are not until it is mended`;
    const text = `the projects of ${list} can't be listed since ${instantText(failingSince)}: ${kept}; ${truncate(error, ERROR_LENGTH_MAX)}`;
    return { ...about, isWrong: true, text, since: failingSince };
  }
  if (waiting === 0 || waitingSince === null) {
    return { ...about, isWrong: false, text: `The projects of ${list} are listed again.`, since: null };
  }
  const text = `${waiting} of ${projects} projects of ${list} are missing from the list since ${instantText(waitingSince)}, more than half: they are exported until a list an hour or more later lacks them, too, or until a person runs check --confirm-projects`;
  return { ...about, isWrong: true, text, since: waitingSince };
}

/** `isExplained`: another condition says why the run failed. Of an export the conditions about slices do if one of its slices is failed. */
function runConditions({ kind, job, outcome, failedRun }: JobHealth, isExplained: boolean): readonly Condition[] {
  const about = { severity: "warning", section: "runs" } as const;
  const isShown = failedRun?.overCompleteDays === true && !isExplained;
  const isInterrupted = failedRun?.status === "interrupted";
  const interrupted: Condition | undefined = failedRun && {
    ...{ ...about, name: "interrupted", subject: `${kind} ${job}`, told: "shown", since: failedRun.startedAt },
    isWrong: isShown && isInterrupted,
    text: `${kind} ${job} was interrupted in its run of ${instantText(failedRun.startedAt)} (${failedRun.trigger})${failedRun.error === null ? "" : `: ${failedRun.error}`}`,
  };
  const ended: Condition | undefined = outcome && {
    ...{ ...about, name: kind, subject: job, since: outcome.startedAt },
    isWrong: outcome.status === "failed",
    text: outcomeText(`${kind} ${job}`, outcome),
    told: outcome.status === "failed" && (!isShown || isInterrupted) ? "notified" : undefined,
  };
  return [interrupted, ended].flatMap((one) => one ?? []);
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
