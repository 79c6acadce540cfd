// Sends notifications when conditions begin and end, posts the weekly report, and pings the dead man's switch while all is well.

import os from "node:os";
import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { isConnectionError } from "../db/connection/errors.ts";
import { claimNotification, type LastSent, markSent, readLastSent, releaseNotification } from "../db/notifications.ts";
import { errorText } from "../errors.ts";
import { health, isWell } from "../facts/health.ts";
import { readReportData } from "../facts/overview.ts";
import { latestOccurrence } from "../schedule/schedule.ts";
import { type Notification, notificationsOf, sanitizeText, senderSuffix } from "../show/notification.ts";
import { reportText } from "../show/sentences.ts";
import { DAY_MS, dayOf, lastDays } from "../usage/days.ts";
import { callReceiver, type Receiver, type Receivers } from "./webhook.ts";

export type NotifierContext = {
  readonly app: Pick<App, "log" | "scrubber">;
  readonly db: Database;
  readonly config: Config;
  readonly receivers: Receivers;
  /** Aborts the calls to the receivers. */
  readonly stop: AbortSignal;
  /** For tests. */
  readonly timeoutMs?: number;
};

/** After this time only a due report is still sent; the next call of the notifier sends the remaining notifications. */
const SENDING_MS_MAX = 5_000;
const MINUTE_MS = 60_000;
const REPORT_LENGTH_MAX = 2_000;
/** How a sent report is recorded: each record must say "wrong" or "well", though neither fits a report. */
const REPORTED = "wrong" as const;

const PROBLEMS = {
  evaluate: "alerts not evaluated or notifications not recorded, will be retried",
  webhook: "notification not sent, will be retried",
  dead_man: "dead man's switch not pinged",
} as const;

/** Returns a function that reads the health state and sends what is due. It never throws. */
export function openNotifier(context: NotifierContext): () => Promise<unknown> {
  const { app, db, config, stop, timeoutMs } = context;
  const { webhook, deadMan } = context.receivers;
  const attempt = openAttempts(app.log, stop);
  let pingedMinute: number | undefined;

  async function sendDue(): Promise<void> {
    const minute = Math.floor(Date.now() / MINUTE_MS);
    // At most one ping a minute, however often a tick comes.
    const isPingDue = deadMan !== undefined && minute !== pingedMinute;
    if (!webhook && !isPingDue) return;
    // `lastSent` is read before the health state. In the other order another replica could send a newer notification in between, and this
    // replica would then send a notification from its older state.
    const lastSent = webhook && (await readLastSent(db));
    const state = await health(db, config);
    if (webhook && lastSent) {
      const sentStates = new Map([...lastSent].map(([subject, sent]) => [subject, sent.state]));
      const untilMs = performance.now() + SENDING_MS_MAX;
      for (const notification of notificationsOf(state.conditions, sentStates, app.scrubber.scrub)) {
        if (stop.aborted || performance.now() > untilMs) break;
        await send(webhook, notification, lastSent.get(notification.subject));
      }
      const report = await dueReport(context, lastSent, new Date());
      if (report) await send(webhook, report, lastSent.get(report.subject));
    }
    if (isPingDue && !stop.aborted && isWell(state)) {
      pingedMinute = minute;
      await attempt("dead_man", () => callReceiver(deadMan, undefined, stop, timeoutMs));
    }
  }

  async function send(to: Receiver, notification: Notification, lastSent: LastSent | undefined): Promise<void> {
    const { subject, state, text } = notification;
    const claim = await claimNotification(db, subject, lastSent);
    if (claim === undefined) return;
    const textWithSender = `${text}${senderSuffix(config.monitor.publicUrl, os.hostname())}`;
    if (await attempt("webhook", () => callReceiver(to, textWithSender, stop, timeoutMs))) {
      await markSent(db, notification, claim);
      app.log.info({ subject, state }, "notification sent");
    } else await releaseNotification(db, subject, claim);
  }

  return () => attempt("evaluate", sendDue);
}

/** Returns a function that does some work and says whether it succeeded. A problem is logged when it begins, and not again while it lasts. */
function openAttempts(log: App["log"], stop: AbortSignal) {
  const problems = new Set<keyof typeof PROBLEMS>();
  return async (problem: keyof typeof PROBLEMS, work: () => Promise<void>): Promise<boolean> => {
    try {
      await work();
    } catch (error) {
      if (stop.aborted) return false;
      // An outage of the database is logged by liveness.ts.
      if (isConnectionError(error)) return false;
      if (!problems.has(problem)) log.warn({ reason: errorText(error) }, PROBLEMS[problem]);
      problems.add(problem);
      return false;
    }
    if (problems.delete(problem) && problem !== "evaluate") log.info({ to: problem }, "receiver reached again");
    return true;
  };
}

/** The report of the last 7 complete days, if its time has come and no replica has sent it. After a day it is no longer sent. */
async function dueReport({ app, db, config }: NotifierContext, lastSent: ReadonlyMap<string, LastSent>, now: Date) {
  const { report: schedule } = config.notify;
  const due = schedule === undefined ? undefined : latestOccurrence({ schedule, timezone: "UTC" }, now);
  if (!due || now.getTime() - due.getTime() > DAY_MS) return undefined;
  const subject = `report ${due.toISOString()}`;
  if (lastSent.get(subject)?.state === REPORTED) return undefined;
  const { overview, budgets } = await readReportData(db, { period: lastDays(dayOf(now), 7) }, now);
  const text = sanitizeText(reportText(overview, budgets), app.scrubber.scrub, REPORT_LENGTH_MAX);
  return { subject, state: REPORTED, text };
}
