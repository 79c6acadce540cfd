// The command `alerts`: lists what is not well, by name, and snoozes alerts until a time.

import { type App, readConfig, withDatabase } from "../app.ts";
import { didYouMean } from "../config/suggestions.ts";
import { databaseNow } from "../db/connection/database.ts";
import { removeSnooze, type Snooze, storedSnoozes, storeSnooze } from "../db/snoozes.ts";
import { AppError } from "../errors.ts";
import { ALERT_KINDS, isHeldBy, renderSnooze, snoozeOf } from "../health/alert.ts";
import { alertsOf, conditionsOf } from "../health/alerts.ts";
import type { HealthState } from "../health/state.ts";
import { usageAlertsOf } from "../health/usage-alerts.ts";
import { withKnownProjects } from "../jobs/discover.ts";
import { instantText } from "../show/format.ts";
import { DAY_MS } from "../usage/days.ts";
import { writeAnswer } from "./output.ts";
import { readStatusHealth } from "./status.ts";

type AlertsOptions = { readonly json?: boolean };
export type SnoozeOptions = AlertsOptions & { readonly until: Date };

type ListedAlert = { readonly name: string; readonly text: string; readonly snooze: Snooze | undefined };

/** Lists also what is only notified and not in `status`, such as keys that can be removed. */
export async function runAlerts(app: App, options: AlertsOptions): Promise<number> {
  const config = await readConfig(app);
  const health = await withDatabase(app, async (db) => readStatusHealth(app, db, await withKnownProjects(config, db)));
  const answer = { alerts: listedAlerts(health), snoozes: health.snoozes };
  writeAnswer(app, options, answer, ({ alerts, snoozes }) => {
    const idle = snoozes.filter((snooze) => !alerts.some(({ name }) => isHeldBy(name, snooze)));
    const lines = [
      ...alerts.map(({ name, text, snooze }) => `${name}: ${text}${snooze ? ` (${renderSnooze(snooze)})` : ""}`),
      ...idle.map((snooze) => `${snooze.name}: ${renderSnooze(snooze)}; no such alert is open`),
    ];
    return lines.length === 0 ? "no alert\n" : `${lines.join("\n")}\n`;
  });
  return 0;
}

function listedAlerts(health: HealthState): readonly ListedAlert[] {
  const shown = [...alertsOf(health), ...usageAlertsOf(health)].map(({ name, text, snooze }) => ({
    name,
    text,
    snooze,
  }));
  const names = new Set(shown.map(({ name }) => name));
  const others = conditionsOf(health).flatMap(({ subject, alsoNamed = [], isWrong, text }) => {
    const snooze = snoozeOf([subject, ...alsoNamed], health.snoozes);
    return isWrong && !names.has(subject) ? [{ name: subject, text: asLine(text()), snooze }] : [];
  });
  return [...shown, ...others];
}

/** A notification is a sentence of its own; here it follows a name, like the other alerts. */
function asLine(sentence: string): string {
  return `${sentence.charAt(0).toLowerCase()}${sentence.slice(1).replace(/\.$/, "")}`;
}

export async function runSnooze(app: App, name: string, { until, ...options }: SnoozeOptions): Promise<number> {
  requireAlertName(name);
  const config = await readConfig(app);
  const answer = await withDatabase(app, async (db) => {
    requireUntil(until, await databaseNow(db));
    const isOpen = listedAlerts(await readStatusHealth(app, db, await withKnownProjects(config, db))).some((alert) =>
      isHeldBy(alert.name, { name }),
    );
    await storeSnooze(db, { name, until, by: app.person });
    return { name, until, isOpen };
  });
  writeAnswer(app, options, answer, ({ isOpen }) => {
    const open = isOpen ? "" : "; no such alert is open now, and one that opens until then is not notified";
    return `${name} is snoozed until ${instantText(until)}${open}\n`;
  });
  return 0;
}

export async function runUnsnooze(app: App, name: string, options: AlertsOptions): Promise<number> {
  await readConfig(app);
  const answer = await withDatabase(app, async (db) => {
    const names = (await storedSnoozes(db)).map((snooze) => snooze.name);
    return { name, wasSnoozed: await removeSnooze(db, name), names };
  });
  if (!answer.wasSnoozed) {
    const snoozed = answer.names.length === 0 ? "nothing is" : `snoozed: ${answer.names.join(", ")}`;
    throw new AppError("config", `${JSON.stringify(name)} is not snoozed${didYouMean(name, answer.names)}; ${snoozed}`);
  }
  writeAnswer(app, options, { name }, () => `${name} is not snoozed any more\n`);
  return 0;
}

/** A name that no alert can have would hold nothing, and nobody would be told. */
function requireAlertName(name: string): void {
  const [kind = ""] = name.split(" ");
  if (ALERT_KINDS.includes(kind)) return;
  throw new AppError(
    "config",
    `expected the name of an alert, as \`alerts\` lists it, such as "gaps nightly" or "budget november"; got ${JSON.stringify(name)}${didYouMean(kind, ALERT_KINDS)}`,
  );
}

const SNOOZE_DAYS_MAX = 366;

function requireUntil(until: Date, now: Date): void {
  const latest = new Date(now.getTime() + SNOOZE_DAYS_MAX * DAY_MS);
  if (until > now && until <= latest) return;
  throw new AppError(
    "config",
    `--until: expected a time after ${instantText(now)}, at most ${SNOOZE_DAYS_MAX} days later; got ${instantText(until)}`,
  );
}
