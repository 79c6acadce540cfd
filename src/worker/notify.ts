// Tells people what went wrong and what is well again, and while all is well says so to whoever waits for silence.

import os from "node:os";
import { isAway } from "../db/away.ts";
import { claimNotice, giveNoticeBack, noteSaid, readSaid, type Said } from "../db/notices.ts";
import { errorText } from "../errors.ts";
import type { Receivers } from "../jobs/receivers.ts";
import { readStanding } from "../jobs/standing.ts";
import { isWell } from "../monitor/health-state.ts";
import { signature } from "../monitor/notice-texts.ts";
import { type Notice, noticesOf } from "../monitor/notices.ts";
import { type PostLimits, ping, postText, type Receiver } from "../monitor/post.ts";
import { readSituation } from "./read-situation.ts";
import type { WorkerWorld } from "./world.ts";

export type Notifier = {
  /** Never throws. Takes no longer than a slow receiver is given, twice. */
  readonly tick: () => Promise<void>;
};

type Target = Parameters<WorkerWorld["metrics"]["noticed"]>[0];

/** What may go wrong, and how the log says it. */
const TROUBLES = {
  decide: "no notices: what is the case could not be read",
  webhook: "notice not sent, to be tried again",
  dead_man: "nobody told that all is well",
} as const;

export type NotifierWorld = Pick<WorkerWorld, "db" | "config" | "ids"> & {
  readonly app: Pick<WorkerWorld["app"], "log" | "scrubber">;
  readonly metrics: Pick<WorkerWorld["metrics"], "noticed">;
};

/** After so long nothing more is sent in this tick: the rest is in the next. */
const SENDING_MS_MAX = 5_000;
const MINUTE_MS = 60_000;

/** `stop` ends what is being sent. */
export function openNotifier(
  world: NotifierWorld,
  { webhook, deadMan }: Receivers,
  stop: AbortSignal,
  limits: PostLimits = {},
): Notifier {
  const { app, db, config, metrics } = world;
  const scrub = (text: string) => app.scrubber.scrub(text);
  /** Of what the log knows, and need not hear again. */
  const failing = new Set<keyof typeof TROUBLES>();
  const signed = signature(config.monitor.publicUrl, os.hostname());
  let pingedMinute: number | undefined;

  async function sendNotices(to: Receiver): Promise<void> {
    const startedMs = performance.now();
    // Before the situation: what somebody says meanwhile can't be claimed with it.
    const said = await readSaid(db);
    const states = new Map([...said].map(([subject, { state }]) => [subject, state]));
    for (const notice of noticesOf(await readSituation(world), states, scrub)) {
      if (stop.aborted || performance.now() - startedMs > SENDING_MS_MAX) return;
      await sendNotice(to, notice, said.get(notice.subject));
    }
  }

  async function sendNotice(to: Receiver, notice: Notice, said: Said | undefined): Promise<void> {
    const claim = await claimNotice(db, notice.subject, said);
    if (claim === undefined) return;
    if (await sent("webhook", () => postText(to, `${notice.text}${signed}`, stop, limits))) {
      await noteSaid(db, notice, claim);
      app.log.info({ subject: notice.subject, state: notice.state }, "notice sent");
    } else {
      await giveNoticeBack(db, notice.subject, claim);
    }
  }

  /** At most once a minute, however often a tick comes. */
  async function pingWhileWell(to: Receiver): Promise<void> {
    const minute = Math.floor(Date.now() / MINUTE_MS);
    if (minute === pingedMinute || !isWell(await readStanding(db, config))) return;
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

  function tellOnce(what: keyof typeof TROUBLES, error: unknown): void {
    // The outage of the database is already reported.
    if (!failing.has(what) && !isAway(error)) app.log.warn({ reason: errorText(error) }, TROUBLES[what]);
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
