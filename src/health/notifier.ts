// Sends notifications to the webhook when conditions begin and end, and pings the dead man's switch while all is well.

import os from "node:os";
import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import type { Database } from "../db/connection/database.ts";
import { isConnectionError } from "../db/connection/errors.ts";
import { claimNotification, type LastSent, markSent, readLastSent, releaseNotification } from "../db/notifications.ts";
import { errorText } from "../errors.ts";
import { conditionsOf, isWell } from "./conditions.ts";
import type { NotificationTarget, ProcessMetrics } from "./metrics.ts";
import { type Notification, notificationsOf, senderSuffix } from "./notifications.ts";
import { readHealth } from "./read-health.ts";
import type { HealthState } from "./state.ts";
import { ping, postText, type Receiver, type Receivers, type WebhookLimits } from "./webhook.ts";

export type Notifier = {
  /** Never throws. Its HTTP calls take at most SENDING_MS_MAX plus the time limits of one notification and one ping. */
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

/** `stop` aborts the calls to the receivers. */
export function openNotifier(
  context: NotifierContext,
  { webhook, deadMan }: Receivers,
  stop: AbortSignal,
  limits: WebhookLimits = {},
): Notifier {
  const { db, config, log, scrub } = context;
  const { attempt, problemBegan, problemEnded } = openAttempts(context, stop);
  const suffix = senderSuffix(config.monitor.publicUrl, os.hostname());
  let pingedMinute: number | undefined;

  async function sendNotifications(to: Receiver, state: HealthState, lastSent: ReadonlyMap<string, LastSent>) {
    const startedMs = performance.now();
    const lastStates = new Map([...lastSent].map(([subject, sent]) => [subject, sent.state]));
    for (const notification of notificationsOf(conditionsOf(state), lastStates, scrub)) {
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
    // At most one ping a minute, however often a tick comes.
    const isPingDue = deadMan !== undefined && minute !== pingedMinute;
    if (!webhook && !isPingDue) return;
    // `lastSent` is read before the health state. In the other order another replica could send a newer notification in between,
    // and this replica would then send one from its older state.
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
        problemEnded("evaluate");
      } catch (error) {
        if (!stop.aborted) problemBegan("evaluate", error);
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

/** Counts the calls that succeeded and failed, and logs a problem only when it begins. */
function openAttempts({ log, metrics }: NotifierContext, stop: AbortSignal) {
  const current = new Set<Problem>();

  function problemBegan(problem: Problem, error: unknown): void {
    // An outage of the database is logged elsewhere.
    if (!current.has(problem) && !isConnectionError(error)) {
      log.warn({ reason: errorText(error) }, PROBLEM_MESSAGES[problem]);
    }
    current.add(problem);
  }

  /** Returns whether the problem had begun before. */
  const problemEnded = (problem: Problem): boolean => current.delete(problem);

  /** Returns whether `send` succeeded. */
  async function attempt(target: NotificationTarget, send: () => Promise<void>): Promise<boolean> {
    try {
      await send();
    } catch (error) {
      if (stop.aborted) return false;
      metrics.notificationEnded(target, "failed");
      problemBegan(target, error);
      return false;
    }
    metrics.notificationEnded(target, "sent");
    if (problemEnded(target)) log.info({ to: target }, "receiver reached again");
    return true;
  }

  return { attempt, problemBegan, problemEnded };
}
