// The notifications to send: the difference between the conditions and what was sent last. Pure.

import type { Condition } from "../facts/conditions.ts";
import { firstNames, truncate } from "../text.ts";
import { capitalized, counted } from "./format.ts";

export type NotificationState = "wrong" | "well";

export type Notification = {
  /** A condition's name and subject, such as "failed unauthorized". */
  readonly subject: string;
  readonly state: NotificationState;
  readonly text: string;
  /** If it is about many conditions, their subjects. */
  readonly covers?: readonly string[];
};

/** `name` is the condition's name, or only the first word of it if the condition is over: name and subject were stored as one text. */
type NamedNotification = Notification & { readonly name: string };

/** Replaces the first word of the subject in the notification that a condition is over, where that word would not be understood. */
const ENDED: Readonly<Record<string, string>> = {
  config: "refused configuration",
  failed: "failed readings:",
  missing: "missing usage",
  suspect: "usage in doubt",
};

/** A condition is sent when it begins and when it ends, but not when it grows. `lastSent` has the last state sent for each subject. */
export function notificationsOf(
  conditions: readonly Condition[],
  lastSent: ReadonlyMap<string, NotificationState>,
  scrub: (text: string) => string,
): readonly Notification[] {
  const current = Map.groupBy(conditions, ({ name, subject }) => `${name} ${subject}`.trim());
  const begun = [...current].flatMap(([subject, same]): readonly NamedNotification[] => {
    const [first] = same;
    if (!first || lastSent.get(subject) === "wrong" || same.every(({ isQuiet }) => isQuiet)) return [];
    return [{ name: first.name, subject, state: "wrong", text: same.map(({ text }) => text).join("; ") }];
  });
  const hasReadingFailed = conditions.some(({ name }) => name === "unread");
  const ended = [...lastSent].flatMap(([subject, phase]): readonly NamedNotification[] => {
    const [name = ""] = subject.split(" ");
    // Thresholds of budgets, notifications about many conditions, and reports are sent once, and never end.
    const isEndless = ["budget", "many", "report"].includes(name);
    const isUnknown = name === "anomaly" && hasReadingFailed;
    // A rotation whose failed attempts became critical has not recovered.
    const isNowWorse = current.has(subject.replace(/^key attempts /, "key attention "));
    if (phase === "well" || current.has(subject) || isEndless || isUnknown || isNowWorse) return [];
    return [{ name, subject, state: "well", text: `Over: ${subject.replace(name, ENDED[name] ?? name)}.` }];
  });
  return [...Map.groupBy([...begun, ...ended], ({ name, state }) => `${state} ${name}`).values()]
    .flatMap(([first, ...others]) => {
      if (!first) return [];
      return others.length < SINGLE_MAX ? [first, ...others] : digestOf(first, others);
    })
    .map(({ name: _, ...one }) => ({ ...one, text: sanitizeText(one.text, scrub) }));
}

/** If more conditions with one name begin or end at once, as after an outage, one notification covers them all. */
const SINGLE_MAX = 5;

function digestOf(first: NamedNotification, others: readonly NamedNotification[]): NamedNotification {
  const subjects = others.map(({ subject }) => subject);
  // The text of the first comes last, as it may be as long as an error.
  const text = `${counted(others.length + 1, "change")} of "${first.name}" at once; usage-export status lists what is wrong. Among them are ${firstNames(subjects, 3)}. The first: ${first.text}`;
  return { ...first, subject: `many ${first.name}`, text, covers: [first.subject, ...subjects] };
}

/** Appended to every text. Names the sender, because several may write to one channel, and where to look. */
export function senderSuffix(publicUrl: string | undefined, host: string): string {
  return ` — usage-export ${publicUrl === undefined ? `on ${host}` : `at ${new URL(publicUrl).host}, ${publicUrl}`}`;
}

/** Escapes what Slack interprets, as an error may quote `<!channel>`. Secrets are removed before the text is cut, while they are whole. */
export function sanitizeText(text: string, scrub: (text: string) => string, lengthMax = 500): string {
  const sentence = capitalized(truncate(scrub(text).replaceAll(/\s+/g, " "), lengthMax));
  // In some chats @channel would notify everybody too: an invisible character after the @ prevents that.
  return sentence.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("@", "@\u200b");
}
