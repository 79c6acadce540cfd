// Decides which notifications to send: one when an alert opens, one when it is resolved. Pure.

import type { Retire } from "../keys/policy.ts";
import type { Day } from "../usage/days.ts";

export type Notification = {
  /** What it is about: the same in every replica. */
  readonly subject: string;
  readonly state: AlertPhase;
  readonly text: string;
};

/**
 * What is to be said now, where `said` was said last; what nothing was said of yet is "well".
 *
 * A job that fails for the fifth night says nothing new, and a gap that grows is no news until it was closed. Each concern
 * about a rotation stands alone: a key that waits to be removed, as it may for weeks, must not keep quiet about one that
 * is refused.
 *
 * Nothing is said about the gaps of a job that fails: the notice of its failure says what is not there. What is left when it
 * works again is said then.
 */
export function notificationsOf(
  { jobs, gaps, rotations }: AlertState,
  said: ReadonlyMap<string, AlertPhase>,
  scrub: (text: string) => string,
): Notification[] {
  const failing = new Set(jobs.flatMap(({ kind, name, last }) => (last?.status === "failed" ? `${kind} ${name}` : [])));
  const all = [
    ...jobs.flatMap(jobNotification),
    ...gaps.filter(({ job }) => !failing.has(`export ${job}`)).flatMap(gapsNotification),
    ...rotations.flatMap(rotationNotifications),
  ];
  return all
    .filter(({ subject, state }) => state !== (said.get(subject) ?? "well"))
    .map((notice) => ({ ...notice, text: sanitizeText(notice.text, scrub) }));
}

function jobNotification(job: JobRunState): Notification[] {
  if (!job.last) return [];
  const state = job.last.status === "failed" ? "wrong" : "well";
  return [{ subject: `${job.kind} ${job.name}`, state, text: jobText(job, job.last) }];
}

function gapsNotification({ job, slices }: JobGaps): Notification[] {
  if (!slices) return [];
  return [{ subject: `gaps ${job}`, state: slices.length > 0 ? "wrong" : "well", text: gapsText(job, slices) }];
}

function rotationNotifications(rotation: RotationHealth): Notification[] {
  return rotationAlerts(rotation).map(({ concern, state, text }) => ({
    subject: `key ${concern} ${rotation.rotation}`,
    state,
    text: `Rotation ${rotation.rotation}: ${text}`,
  }));
}

// What is the case now, as far as people are told of it.

export type AlertState = {
  readonly jobs: readonly JobRunState[];
  /** Of each export. */
  readonly gaps: readonly JobGaps[];
  readonly rotations: readonly RotationHealth[];
};

type JobRunState = {
  readonly kind: "export" | "rotation";
  readonly name: string;
  /** Of the newest of its runs that ended well or failed, but backfills; undefined before the first. */
  readonly last: RunResult | undefined;
};

export type RunResult = {
  readonly status: "ok" | "failed";
  readonly trigger: string;
  readonly startedAt: Date;
  /** Slices. */
  readonly planned: number;
  readonly suspect: number;
  readonly failed: number;
  /** What went wrong first. */
  readonly error: string | null;
};

export type JobGaps = {
  readonly job: string;
  /** Undefined while it can't be told: a run reads them now or is about to, or a person paused the job. */
  readonly slices: readonly UnreadSlice[] | undefined;
};

/** A slice that is due and was not read. */
export type UnreadSlice = { readonly series: string; readonly day: Day; readonly status: "missing" | "failed" };

export type RotationHealth = {
  readonly rotation: string;
  readonly maxAgeDays: number;
  readonly retire: Retire;
  /** Too many attempts failed: nothing is created any more. */
  readonly needsAttention: boolean;
  readonly failedAttempts: number;
  readonly lastError: string | null;
  /** Keys. */
  readonly orphans: number;
  readonly dueForRemoval: number;
  /** Keys that have been due for removal for an hour. A run deletes a key at once when it finds it due, so these were kept. */
  readonly longDueForRemoval: number;
  /** The key in use was refused, and the one before it used. */
  readonly fallback: boolean;
  /** Of the key in use; null while there is none. */
  readonly ageDays: number | null;
};

// What a person is needed for with a rotation, each on its own, and what is said when they are not any more. Pure.

type RotationAlert = {
  readonly concern: "attention" | "fallback" | "age" | "orphans" | "removal";
  readonly state: AlertPhase;
  readonly text: string;
};

/** A key may be replaced on the night after it came of age, and once more where that night fails. */
const LATE_DAYS_MAX = 2;

/** In the order of how much they matter. */
function rotationAlerts(rotation: RotationHealth): readonly RotationAlert[] {
  const { failedAttempts, lastError, ageDays, maxAgeDays, orphans } = rotation;
  const tooOld = ageDays !== null && ageDays > maxAgeDays + LATE_DAYS_MAX;
  const keeps = rotation.retire === "keep";
  const removable = keeps ? rotation.dueForRemoval : rotation.longDueForRemoval;
  return [
    rotationAlert("attention", rotation.needsAttention, {
      wrong: `${countedPlain(failedAttempts, "attempt")} failed in a row, and nothing is created until somebody runs "rotate --now". The last error: ${lastError}`,
      well: "no person is needed any more, it creates keys again.",
    }),
    rotationAlert("fallback", rotation.fallback, {
      wrong: 'the service refused the key in use, and the one before it was used in its place; see "keys".',
      well: "the key in use is not refused any more.",
    }),
    rotationAlert("age", tooOld, {
      wrong: `the key in use is ${ageDays} days old and should have been replaced after ${maxAgeDays}.`,
      well: `the key in use is not too old any more.`,
    }),
    rotationAlert("orphans", orphans > 0, {
      wrong: `${countedPlain(orphans, "key")} may exist at the service whose secret is lost: "keys" shows the comment to find and remove it by.`,
      well: "there is no key any more whose secret is lost.",
    }),
    rotationAlert("removal", removable > 0, {
      wrong: keeps
        ? `${countedPlain(removable, "key")} can be removed at the service: "keys" shows which.`
        : `${countedPlain(removable, "key")} due for removal, and not deleted: "keys" says why.`,
      well: "there is no key any more to be removed at the service.",
    }),
  ];
}

function rotationAlert(
  name: RotationAlert["concern"],
  isWrong: boolean,
  texts: Readonly<Record<AlertPhase, string>>,
): RotationAlert {
  const state = isWrong ? "wrong" : "well";
  return { concern: name, state, text: texts[state] };
}

// What notices say, in a sentence or two for a person who may not be at the machine. Pure.

export type AlertPhase = "wrong" | "well";

const NOTIFICATION_LENGTH_MAX = 500;
const SERIES_SHOWN_MAX = 3;

function jobText({ kind, name }: JobRunState, last: RunResult): string {
  const job = `${kind === "export" ? "Export" : "Rotation"} ${name}`;
  const run = `run of ${minuteText(last.startedAt)} (${last.trigger})`;
  if (last.status === "ok") return `${job} works again: its ${run} went well.`;
  const slices = sliceText(last);
  const reason = last.error === null ? "" : ` The first error: ${last.error}`;
  return `${job} failed in its ${run}${slices}.${reason}`;
}

function sliceText({ planned, failed, suspect }: RunResult): string {
  const parts = [
    ...(failed > 0 ? [`${failed} of ${countedPlain(planned, "slice")} not read`] : []),
    ...(suspect > 0
      ? [`${suspect} of ${countedPlain(planned, "slice")} empty where there were numbers, which stay`]
      : []),
  ];
  return parts.length > 0 ? `: ${parts.join(", ")}` : "";
}

function gapsText(job: string, slices: readonly UnreadSlice[]): string {
  if (slices.length === 0) return `Export ${job} has no gaps any more.`;
  const days = [...new Set(slices.map(({ day }) => day))].sort();
  const missing = slices.filter(({ status }) => status === "missing").length;
  const series = [...new Set(slices.map((slice) => slice.series))];
  const others = series.length - SERIES_SHOWN_MAX;
  return [
    `Export ${job} has gaps: ${countedPlain(slices.length, "slice")} of ${daysText(days)}`,
    `(${missing} missing, ${slices.length - missing} failed), of ${series.slice(0, SERIES_SHOWN_MAX).join(", ")}`,
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

export function countedPlain(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function minuteText(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** Appended to every text: which installation sent it, because several may write to one channel, and where to look. */
export function senderSuffix(publicUrl: string | undefined, host: string): string {
  if (publicUrl === undefined) return ` — usage-export on ${host}`;
  return ` — usage-export at ${new URL(publicUrl).host}, ${publicUrl}`;
}

/**
 * The text as it is sent: on one line, without secrets, not too long, and with the three characters escaped that Slack takes
 * for its own: an error may quote anything, and `<!channel>` would ring everybody's phone. Secrets go first, while they are whole.
 */
function sanitizeText(text: string, scrub: (text: string) => string): string {
  const line = [...scrub(text).replaceAll(/\s+/g, " ")];
  const short =
    line.length > NOTIFICATION_LENGTH_MAX ? `${line.slice(0, NOTIFICATION_LENGTH_MAX - 1).join("")}…` : line.join("");
  // In some chats @channel in an error would ring everybody: what can't be seen behind the sign keeps it a sign.
  return short.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("@", "@\u200b");
}
