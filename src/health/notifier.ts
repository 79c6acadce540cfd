// Sends notifications to the webhook when alerts open or are resolved, and pings the dead man's switch while all is well.

import os from "node:os";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { isConnectionError } from "../db/connection/errors.ts";
import { claimNotification, type LastSent, markSent, readLastSent, releaseNotification } from "../db/notifications.ts";
import { errorText } from "../errors.ts";
import { isWell, type Notification, notificationsOf, senderSuffix } from "./alerts.ts";
import type { NotificationTarget, ProcessMetrics } from "./metrics.ts";
import { readHealth } from "./read-health.ts";
import type { HealthState } from "./state.ts";
import { ping, postText, type Receiver, type Receivers, type WebhookLimits } from "./webhook.ts";

export type Notifier = {
  /** Never throws. Takes no longer than a slow receiver is given, twice. */
  readonly tick: () => Promise<void>;
};

export type NotifierContext = {
  readonly db: Database;
  readonly config: Config;
  readonly log: Logger;
  readonly scrub: (text: string) => string;
  readonly metrics: Pick<ProcessMetrics, "notificationEnded">;
};

/** After this time a tick sends nothing more; the next tick sends the rest. */
const SENDING_MS_MAX = 5_000;
const MINUTE_MS = 60_000;

/** `stop` ends what is being sent. */
export function openNotifier(
  context: NotifierContext,
  { webhook, deadMan }: Receivers,
  stop: AbortSignal,
  limits: WebhookLimits = {},
): Notifier {
  const { db, config, log, scrub } = context;
  const { attempt, began, ended } = openAttempts(context, stop);
  const suffix = senderSuffix(config.monitor.publicUrl, os.hostname());
  let pingedMinute: number | undefined;

  async function sendNotifications(to: Receiver, state: HealthState, lastSent: ReadonlyMap<string, LastSent>) {
    const startedMs = performance.now();
    const phases = new Map([...lastSent].map(([subject, sent]) => [subject, sent.state]));
    for (const notification of notificationsOf(state, phases, scrub)) {
      if (stop.aborted || performance.now() - startedMs > SENDING_MS_MAX) return;
      await sendNotification(to, notification, lastSent.get(notification.subject));
    }
  }

  async function sendNotification(to: Receiver, notification: Notification, lastSent: LastSent | undefined) {
    const { subject, state, text } = notification;
    const claim = await claimNotification(db, subject, lastSent);
    if (claim === undefined) return;
    if (await attempt("webhook", () => postText(to, `${text}${suffix}`, stop, limits))) {
      await markSent(db, notification, claim);
      log.info({ subject, state }, "notification sent");
    } else {
      await releaseNotification(db, subject, claim);
    }
  }

  async function evaluate(): Promise<void> {
    const minute = Math.floor(Date.now() / MINUTE_MS);
    // At most once a minute, however often a tick comes.
    const isPingDue = deadMan !== undefined && minute !== pingedMinute;
    if (!webhook && !isPingDue) return;
    // Before the health state: a state that is older than the claim would send again what another replica sent in between.
    const lastSent = webhook && (await readLastSent(db));
    const state = await readHealth(db, config);
    if (webhook && lastSent) await sendNotifications(webhook, state, lastSent);
    if (isPingDue && !stop.aborted && isWell(state)) {
      pingedMinute = minute;
      await attempt("dead_man", () => ping(deadMan, stop, limits));
    }
  }

  return {
    async tick() {
      try {
        await evaluate();
        ended("evaluate");
      } catch (error) {
        if (!stop.aborted) began("evaluate", error);
      }
    },
  };
}

const PROBLEM_MESSAGES = {
  evaluate: "alerts not evaluated: reading the health state failed",
  webhook: "notification not sent, will be retried",
  dead_man: "dead man's switch not pinged",
} as const;

type Problem = keyof typeof PROBLEM_MESSAGES;

/** Counts what is sent, and logs each problem once until it has ended. */
function openAttempts({ log, metrics }: NotifierContext, stop: AbortSignal) {
  const current = new Set<Problem>();

  function began(problem: Problem, error: unknown): void {
    // An outage of the database is logged elsewhere.
    if (!current.has(problem) && !isConnectionError(error)) {
      log.warn({ reason: errorText(error) }, PROBLEM_MESSAGES[problem]);
    }
    current.add(problem);
  }

  /** Returns whether there was one. */
  const ended = (problem: Problem): boolean => current.delete(problem);

  /** Returns whether it was sent. */
  async function attempt(target: NotificationTarget, send: () => Promise<void>): Promise<boolean> {
    try {
      await send();
    } catch (error) {
      if (stop.aborted) return false;
      metrics.notificationEnded(target, "failed");
      began(target, error);
      return false;
    }
    metrics.notificationEnded(target, "sent");
    if (ended(target)) log.info({ to: target }, "receiver reached again");
    return true;
  }

  return { attempt, began, ended };
}
