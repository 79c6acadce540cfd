// What a person is needed for with a rotation, each on its own, and what is said when they are not any more. Pure.

import { counted, type NoticeState } from "./notice-texts.ts";
import type { RotationState } from "./situation.ts";

export type RotationConcern = {
  readonly concern: "attention" | "fallback" | "age" | "orphans" | "removal";
  readonly state: NoticeState;
  readonly text: string;
};

/** A key may be replaced on the night after it came of age, and once more where that night fails. */
const LATE_DAYS_MAX = 2;

/** In the order of how much they matter. */
export function rotationConcerns(rotation: RotationState): readonly RotationConcern[] {
  const { failedAttempts, lastError, ageDays, maxAgeDays, orphans } = rotation;
  const tooOld = ageDays !== null && ageDays > maxAgeDays + LATE_DAYS_MAX;
  const keeps = rotation.retire === "keep";
  const removable = keeps ? rotation.dueForRemoval : rotation.longDueForRemoval;
  return [
    concern("attention", rotation.needsAttention, {
      wrong: `${counted(failedAttempts, "attempt")} failed in a row, and nothing is created until somebody runs "rotate --now". The last error: ${lastError}`,
      well: "no person is needed any more, it creates keys again.",
    }),
    concern("fallback", rotation.fallback, {
      wrong: 'the service refused the key in use, and the one before it was used in its place; see "keys".',
      well: "the key in use is not refused any more.",
    }),
    concern("age", tooOld, {
      wrong: `the key in use is ${ageDays} days old and should have been replaced after ${maxAgeDays}.`,
      well: `the key in use is not too old any more.`,
    }),
    concern("orphans", orphans > 0, {
      wrong: `${counted(orphans, "key")} may exist at the service whose secret is lost: "keys" shows the comment to find and remove it by.`,
      well: "there is no key any more whose secret is lost.",
    }),
    concern("removal", removable > 0, {
      wrong: keeps
        ? `${counted(removable, "key")} can be removed at the service: "keys" shows which.`
        : `${counted(removable, "key")} due for removal, and not deleted: "keys" says why.`,
      well: "there is no key any more to be removed at the service.",
    }),
  ];
}

function concern(
  name: RotationConcern["concern"],
  isWrong: boolean,
  texts: Readonly<Record<NoticeState, string>>,
): RotationConcern {
  const state = isWrong ? "wrong" : "well";
  return { concern: name, state, text: texts[state] };
}
