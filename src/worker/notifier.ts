// Sends notifications to the webhook when conditions begin and end, posts the weekly report there, and pings the dead man's switch while all
// is well.

import os from "node:os";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { isConnectionError } from "../db/connection/errors.ts";
import { claimNotification, type LastSent, markSent, readLastSent, releaseNotification } from "../db/notifications.ts";
import { errorText } from "../errors.ts";
import { health, isWell } from "../facts/health.ts";
import { latestOccurrence } from "../schedule/cron.ts";
import { type Notification, notificationsOf, sanitizeText, senderSuffix } from "../show/notification.ts";
import { reportText } from "../show/sentence.ts";
import { DAY_MS, dayOf } from "../usage/days.ts";
import { readReportData, weekBefore } from "./dashboard-reads.ts";
import { ping, postText, type Receiver, type Receivers } from "./webhook.ts";

export type NotifierContext = {
  readonly db: Database;
  readonly config: Config;
  readonly log: Logger;
  readonly scrub: (text: string) => string;
};

/** After this time a tick sends nothing more; the next tick sends the rest. */
const SENDING_MS_MAX = 5_000;
const MINUTE_MS = 60_000;
const REPORT_LENGTH_MAX = 2_000;
/** A report that was sent is stored with the state of a condition that began. Before that, with the state of one that is over. */
const REPORTED = "wrong";

type SentBySubject = ReadonlyMap<string, LastSent>;

const PROBLEMS = {
  evaluate: "alerts not evaluated: reading the health state failed",
  webhook: "notification not sent, will be retried",
  dead_man: "dead man's switch not pinged",
} as const;

/** Logs a problem when it begins, and not again while it lasts. What fails after the stop is no problem. */
class Problems {
  readonly #log: Logger;
  readonly #stop: AbortSignal;
  readonly #current = new Set<keyof typeof PROBLEMS>();

  constructor(log: Logger, stop: AbortSignal) {
    this.#log = log;
    this.#stop = stop;
  }

  /** Returns whether the work succeeded. */
  async attempt(problem: keyof typeof PROBLEMS, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
    } catch (error) {
      if (this.#stop.aborted) return false;
      // An outage of the database is logged elsewhere.
      const isNews = !this.#current.has(problem) && !isConnectionError(error);
      if (isNews) this.#log.warn({ reason: errorText(error) }, PROBLEMS[problem]);
      this.#current.add(problem);
      return false;
    }
    const isOver = this.#current.delete(problem);
    if (isOver && problem !== "evaluate") this.#log.info({ to: problem }, "receiver reached again");
    return true;
  }
}

/** The returned function never throws. `stop` aborts the calls to the receivers. */
export function openNotifier(
  { db, config, log, scrub }: NotifierContext,
  { webhook, deadMan }: Receivers,
  stop: AbortSignal,
  timeoutMs?: number,
): () => Promise<void> {
  const suffix = senderSuffix(config.monitor.publicUrl, os.hostname());
  const problems = new Problems(log, stop);
  let pingedMinute: number | undefined;

  async function send(to: Receiver, notification: Notification, lastSent: LastSent | undefined): Promise<void> {
    const { subject, state, text } = notification;
    const claim = await claimNotification(db, subject, lastSent);
    if (claim === undefined) return;
    if (await problems.attempt("webhook", () => postText(to, `${text}${suffix}`, stop, timeoutMs))) {
      await markSent(db, notification, claim);
      log.info({ subject, state }, "notification sent");
    } else await releaseNotification(db, subject, claim);
  }

  async function sendAll(to: Receiver, due: readonly Notification[], lastSent: SentBySubject): Promise<void> {
    const startedMs = performance.now();
    for (const notification of due) {
      if (stop.aborted || performance.now() - startedMs > SENDING_MS_MAX) return;
      await send(to, notification, lastSent.get(notification.subject));
    }
  }

  async function evaluate(): Promise<void> {
    const minute = Math.floor(Date.now() / MINUTE_MS);
    // At most one ping a minute, however often a tick comes.
    const isPingDue = deadMan !== undefined && minute !== pingedMinute;
    if (!webhook && !isPingDue) return;
    // `lastSent` is read before the health state. In the other order another replica could send a newer notification in between,
    // and this replica would then send one from its older state.
    const lastSent = webhook && (await readLastSent(db));
    const state = await health(db, config);
    if (webhook && lastSent) {
      const phases = new Map([...lastSent].map(([subject, sent]) => [subject, sent.state]));
      await sendAll(webhook, notificationsOf(state.conditions, phases, scrub), lastSent);
      const report = await dueReport({ db, config, scrub }, lastSent, new Date());
      if (report) await send(webhook, report, lastSent.get(report.subject));
    }
    if (isPingDue && !stop.aborted && isWell(state)) {
      pingedMinute = minute;
      await problems.attempt("dead_man", () => ping(deadMan, stop, timeoutMs));
    }
  }

  return async () => void (await problems.attempt("evaluate", evaluate));
}

/** Once for each time that is due, by one of the replicas. A time that was missed for more than a day is left out. */
async function dueReport(
  { db, config, scrub }: Omit<NotifierContext, "log">,
  lastSent: SentBySubject,
  now: Date,
): Promise<Notification | undefined> {
  const { report: schedule } = config.notify;
  const due = schedule === undefined ? undefined : latestOccurrence({ schedule, timezone: "UTC" }, now);
  if (!due || now.getTime() - due.getTime() > DAY_MS) return undefined;
  const subject = `report ${due.toISOString()}`;
  if (lastSent.get(subject)?.state === REPORTED) return undefined;
  const { overview, budgets } = await readReportData(db, weekBefore(dayOf(now)), now);
  return { subject, state: REPORTED, text: sanitizeText(reportText(overview, budgets), scrub, REPORT_LENGTH_MAX) };
}
