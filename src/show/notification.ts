// The notifications to send: the difference between the conditions and what was sent last. Pure.

import type { Condition } from "../facts/conditions.ts";
import { firstNames, truncate } from "../text.ts";
import { capitalized, counted } from "./format.ts";

export type Phase = "wrong" | "well";

export type Notification = {
  readonly subject: string;
  readonly state: Phase;
  readonly text: string;
  /** If it is about many conditions, their subjects. */
  readonly covers?: readonly string[];
};

/** `name` is that of the condition, or the first word of it if the condition is over. */
type NamedNotification = Notification & { readonly name: string };

/**
 * `lastSent` has the phase that was sent last for each name and subject. A condition is sent when it begins and when it ends: nothing is sent if
 * a job fails again, or if its gaps grow.
 */
export function notificationsOf(
  conditions: readonly Condition[],
  lastSent: ReadonlyMap<string, Phase>,
  scrub: (text: string) => string,
): readonly Notification[] {
  const current = Map.groupBy(conditions, subjectOf);
  const begun = [...current].flatMap(([subject, same]): readonly NamedNotification[] => {
    const [first] = same;
    if (!first || lastSent.get(subject) === "wrong" || same.every(({ isQuiet }) => isQuiet)) return [];
    return [{ name: first.name, subject, state: "wrong", text: same.map(({ text }) => text).join("; ") }];
  });
  const isAnomalyUnread = conditions.some(({ name }) => name === "unread");
  const ended = [...lastSent].flatMap(([subject, phase]): readonly NamedNotification[] => {
    const [name = ""] = subject.split(" ");
    // Thresholds of budgets, notifications about many conditions, and reports are sent once, and never end.
    const isEndless = ["budget", "many", "report"].includes(name);
    const isUnknown = name === "anomaly" && isAnomalyUnread;
    const hasWorsened = current.has(subject.replace(/^key attempts /, "key attention "));
    if (phase === "well" || current.has(subject) || isEndless || isUnknown || hasWorsened) return [];
    return [{ name, subject, state: "well", text: `Over: ${subject}.` }];
  });
  return [...Map.groupBy([...begun, ...ended], ({ name, state }) => `${state} ${name}`).values()]
    .flatMap((changes) => (changes.length > SINGLE_MAX ? digestOf(changes) : changes))
    .map(({ name: _, ...one }) => ({ ...one, text: sanitizeText(one.text, scrub) }));
}

/** "export nightly", "budget november 2026-11 80", "config" */
function subjectOf({ name, subject }: Condition): string {
  return subject === "" ? name : `${name} ${subject}`;
}

/** If more conditions of one name change at once, as after an outage, one notification covers them all. */
const SINGLE_MAX = 5;

function digestOf(changes: readonly NamedNotification[]): readonly NamedNotification[] {
  const [first] = changes;
  if (!first) return [];
  const covers = changes.map(({ subject }) => subject);
  // The text of the first may be as long as an error.
  const text = `${counted(changes.length, "change")} at once of "${first.name}"; beside the first, ${firstNames(covers.slice(1), 3)}: usage-export status lists what is wrong. The first: ${first.text}`;
  return [{ ...first, subject: `many ${first.name}`, text, covers }];
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
export function sanitizeText(
  text: string,
  scrub: (text: string) => string,
  lengthMax = NOTIFICATION_LENGTH_MAX,
): string {
  const sentence = capitalized(truncate(scrub(text).replaceAll(/\s+/g, " "), lengthMax));
  // In some chats @channel would notify everybody too: an invisible character after the @ prevents that.
  return sentence.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("@", "@\u200b");
}
