// Alerts about the lists of projects by which projects are discovered: one that can't be read, or that is in doubt. Pure.

import type { StoredList } from "../db/projects.ts";
import { counted, instantText } from "../show/format.ts";
import { truncate } from "../text.ts";
import { type Alert, type Condition, nameWord } from "./alert.ts";

const ERROR_LENGTH_MAX = 200;

export function listAlerts(lists: readonly StoredList[]): readonly Alert[] {
  return lists.flatMap((list) => {
    const text = problemOf(list);
    return text === undefined ? [] : [{ name: nameOf(list), text, section: "jobs" as const }];
  });
}

export function listConditions(lists: readonly StoredList[]): readonly Condition[] {
  return lists.map((list) => {
    const problem = problemOf(list);
    const text = () => (problem === undefined ? `The projects of ${list.list} are listed again.` : `${problem}.`);
    return { subject: nameOf(list), isWrong: problem !== undefined, text };
  });
}

function nameOf({ list }: StoredList): string {
  return `projects ${nameWord(list)}`;
}

/** One line for a list, however many projects it has. */
function problemOf({ list, projects, waiting, waitingSince, error, failingSince }: StoredList): string | undefined {
  if (error !== null && failingSince !== null) {
    const kept = `${counted(projects, "project")} of the last list are exported, and new ones are not until it is mended`;
    return `the projects of ${list} can't be listed since ${instantText(failingSince)}: ${kept}; ${truncate(error, ERROR_LENGTH_MAX)}`;
  }
  if (waiting === 0 || waitingSince === null) return undefined;
  return `${waiting} of ${projects} projects of ${list} are missing from the list since ${instantText(waitingSince)}, more than half: they are exported until a list an hour or more later lacks them, too, or until a person runs check --confirm-projects`;
}

/** For `status`: "projects of env ACCOUNT_KEY: 120, 3 gone in the last 7 days, listed 2026-11-22 02:15 UTC" */
export function listText({ list, projects, vanished, readAt }: StoredList): string {
  const gone = vanished > 0 ? `, ${vanished} gone in the last 7 days` : "";
  return `projects of ${list}: ${projects}${gone}, ${readAt ? `listed ${instantText(readAt)}` : "never listed"}`;
}
