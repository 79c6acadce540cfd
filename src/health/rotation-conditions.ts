// The conditions of a rotation. Each has a subject of its own: a key may wait weeks for its removal, and meanwhile the refusal of another
// key must still be notified. Pure.

import { needsAttention } from "../keys/plan.ts";
import { counted } from "../show/format.ts";
import { attemptsText, fallbackText } from "../show/keys.ts";
import { DAY_SECONDS } from "../usage/days.ts";
import type { Condition } from "./condition.ts";
import type { RotationHealth } from "./state.ts";

/** How many days over its maximum age a key may be: it is replaced on the following night, or a night later if that one fails. */
const LATE_DAYS_MAX = 2;

/** The most important first; none if the rotation is not configured any more, as nobody could end them. */
export function rotationConditions(row: RotationHealth): readonly Condition[] {
  const { rotation, configured, failedAttempts, keys, fallback, fallbackAt, warnings } = row;
  if (!configured) return [];
  const { maxAgeDays, retire } = configured;
  const ageDays = Math.floor((row.ageSeconds ?? 0) / DAY_SECONDS);
  const removable = retire === "keep" ? keys.dueForRemoval : keys.longDue;
  const isStopped = needsAttention(failedAttempts);
  const condition = (name: Condition["name"], isWrong: boolean, wrong: string, well: string): Condition => ({
    ...{ name, subject: rotation, severity: "warning", isWrong, section: "keys", since: null },
    text: `rotation ${rotation}: ${isWrong ? wrong : well}`,
  });
  return [
    // Its run is notified.
    { ...condition("key attempts", failedAttempts > 0 && !isStopped, attemptsText(row), ""), told: "shown" },
    {
      ...condition("key attention", isStopped, attemptsText(row), "it creates keys again; nobody has to act any more."),
      severity: "critical",
    },
    {
      ...condition("key fallback", fallback !== null, fallbackText(row), "the key in use is not refused any more."),
      ...{ severity: "critical", since: fallbackAt },
    },
    condition(
      "key age",
      ageDays > maxAgeDays + LATE_DAYS_MAX,
      `the key in use is ${ageDays} days old and should have been replaced after ${maxAgeDays}: rotate --dry-run says what is in the way.`,
      "the key in use is not too old any more.",
    ),
    condition(
      "key orphans",
      keys.orphan > 0,
      `${counted(keys.orphan, "key")} may exist at the service whose secret is lost: "keys" shows the comment to find and remove it by.`,
      "no key with a lost secret is left.",
    ),
    condition(
      "key removal",
      removable > 0,
      retire === "keep"
        ? `${counted(removable, "key")} can be removed at the service: "keys" shows which.`
        : `${counted(removable, "key")} due for removal, and not deleted: "keys" says why.`,
      "no key is left to be removed at the service.",
    ),
    ...warnings.map((text): Condition => ({ ...condition("key", true, text, ""), told: "shown" })),
  ];
}
