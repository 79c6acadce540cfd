// The notifications to send: the difference between the conditions and what was sent last. Pure.

import { counted } from "../show/format.ts";
import { truncate } from "../text.ts";
import type { Condition } from "./condition.ts";

export type Phase = "wrong" | "well";

export type Notification = {
  readonly subject: string;
  readonly state: Phase;
  readonly text: string;
  /** If it is about many conditions, their subjects. */
  readonly covers?: readonly string[];
};

/**
 * One for each condition whose phase differs from the one that was sent last. `lastSent` has that phase by name and subject; a condition
 * without an entry counts as "well". So nothing is sent if a job fails again, or if its gaps grow.
 */
export function notificationsOf(
  conditions: readonly Condition[],
  lastSent: ReadonlyMap<string, Phase>,
  scrub: (text: string) => string,
): readonly Notification[] {
  const changes = [...conditions, ...endedAnomalies(conditions, lastSent)].filter(
    (one) =>
      (one.told === undefined || one.told === "notified") && phaseOf(one) !== (lastSent.get(subjectOf(one)) ?? "well"),
  );
  const groups = Map.groupBy(changes, (one) => `${phaseOf(one)} ${one.name}`);
  return [...groups.values()]
    .flatMap((group) => (group.length > SINGLE_MAX ? [digestOf(group)] : group.map(singleOf)))
    .map((one) => ({ ...one, text: sanitizeText(one.text, scrub) }));
}

/** More conditions of one name than this that change at once, as after an outage, are one notification. */
const SINGLE_MAX = 5;
const SUBJECTS_SHOWN_MAX = 3;

function singleOf(condition: Condition): Notification {
  return { subject: subjectOf(condition), state: phaseOf(condition), text: condition.text };
}

function digestOf(group: readonly Condition[]): Notification {
  const [first, ...others] = group;
  if (!first) throw new Error("a digest is about no condition");
  const named = others.slice(0, SUBJECTS_SHOWN_MAX).map(({ subject }) => subject);
  const rest = others.length - named.length;
  // The text of the first may be as long as an error.
  const text = `${counted(group.length, "change")} at once of "${first.name}"; beside the first, ${named.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}: usage-export status lists what is wrong. The first: ${first.text}`;
  return { subject: `many ${first.name}`, state: phaseOf(first), text, covers: group.map(subjectOf) };
}

function phaseOf({ isWrong }: Condition): Phase {
  return isWrong ? "wrong" : "well";
}

/** "export nightly", "budget november 2026-11 80", "config" */
function subjectOf({ name, subject }: Condition): string {
  return subject === "" ? name : `${name} ${subject}`;
}

/**
 * Unusual usage that was sent and is not judged any more. What was sent of a budget holds, so that a backfill, which has its period watched
 * again, does not send the same alarm a second time.
 */
function endedAnomalies(conditions: readonly Condition[], lastSent: ReadonlyMap<string, Phase>): readonly Condition[] {
  // If unusual days could not be read, none has ended.
  if (conditions.some(({ name, subject }) => name === "unread" && subject === "anomaly")) return [];
  const known = new Set(conditions.map(subjectOf));
  return [...lastSent].flatMap(([sent, phase]): Condition[] => {
    if (phase === "well" || known.has(sent) || !sent.startsWith("anomaly ")) return [];
    const about = { name: "anomaly", subject: sent.slice("anomaly ".length), severity: "warning" } as const;
    return [{ ...about, isWrong: false, text: `${sent}: no longer watched.`, since: null, section: "anomalies" }];
  });
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
  const sentence = line.charAt(0).toUpperCase() + line.slice(1);
  // In some chats @channel would notify everybody too: an invisible character after the @ prevents that.
  return sentence.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("@", "@\u200b");
}
