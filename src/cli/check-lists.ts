// Checks the lists of projects for `check`: what is discovered, and what has changed since the last run.

import type { App } from "../app.ts";
import type { Config } from "../config/config.ts";
import { includes, listOf, withDiscovered } from "../config/discovered.ts";
import { isPattern } from "../config/patterns.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { storedLists, storedProjects, storeReading } from "../db/projects.ts";
import { errorText } from "../errors.ts";
import type { Finding, FindingGroup } from "../jobs/check-project.ts";
import { readLists } from "../jobs/discover.ts";
import { counted, instantText } from "../show/format.ts";
import { firstNames } from "../text.ts";
import {
  applyChange,
  changeList,
  type KnownProject,
  type ListChange,
  type ListedProject,
} from "../usage/project-list.ts";

export type CheckedLists = {
  /** The configuration with the projects that are listed now. */
  readonly config: Config;
  readonly groups: readonly FindingGroup[];
};

/** Stores nothing, unless a person confirms the lists. Without a database nothing is known of earlier lists. */
export async function checkLists(
  app: App,
  config: Config,
  db: Database | undefined,
  isConfirmed: boolean,
): Promise<CheckedLists> {
  if (!config.discovery) return { config, groups: [] };
  const stored = db ? await storedProjects(db) : [];
  const lists = db ? await storedLists(db) : [];
  const now = db ? await databaseNow(db) : new Date();
  const after: KnownProject[] = [];
  const groups: FindingGroup[] = [];
  for (const read of await readLists(app, config, db)) {
    const { list } = read;
    const known = stored.filter((one) => one.list === list);
    const of = `projects that the key in ${list} can see`;
    if ("error" in read) {
      const readAt = lists.find((one) => one.list === list)?.readAt;
      const kept = readAt ? `; ${counted(known.length, "project")} of the list of ${instantText(readAt)} stay` : "";
      const text = `${errorText(read.error)}${kept}`;
      groups.push({ of, findings: [{ what: "list", state: "fail", text }] });
      after.push(...known);
      continue;
    }
    const { listed, leftOut } = read;
    const change = changeList(listed, known, now, isConfirmed);
    if (db && isConfirmed) await storeReading(db, { list, listed, readAt: now, isConfirmed });
    after.push(...applyChange(list, known, change, now));
    const changed = known.length > 0 ? changeFindings(change, known, isConfirmed) : [];
    groups.push({ of, findings: [listFinding(config, list, listed), ...leftOutFindings(leftOut), ...changed] });
  }
  const expanded = withDiscovered(config, after);
  const unused = patternFindings(expanded);
  if (unused.length > 0) groups.push({ of: "discovered projects", findings: unused });
  return { config: expanded, groups };
}

function listFinding({ projects, discovery }: Config, list: string, listed: readonly ListedProject[]): Finding {
  const entries = discovery?.entries.filter((entry) => listOf(entry) === list) ?? [];
  const written = new Set(projects.filter(({ isDiscovered }) => !isDiscovered).map(({ id }) => id));
  const included = listed.filter((project) => entries.some((entry) => includes(entry, project)));
  const inFile = included.filter(({ id }) => written.has(id)).length;
  const counts = [
    `${counted(included.length - inFile, "project")} discovered`,
    ...(included.length < listed.length ? [`${listed.length - included.length} not included or excluded`] : []),
    ...(inFile > 0 ? [`${inFile} with an entry in the file`] : []),
  ];
  const text = `${listed.length} listed: ${counts.join(", ")}`;
  return { what: "list", state: included.length === 0 ? "warn" : "ok", text };
}

function leftOutFindings(leftOut: readonly string[]): Finding[] {
  if (leftOut.length === 0) return [];
  return [{ what: "left out", state: "warn", text: firstNames(leftOut, NAMES_SHOWN_MAX) }];
}

function changeFindings(
  { added, returned, renamed, vanished, waiting }: ListChange,
  known: readonly KnownProject[],
  isConfirmed: boolean,
): Finding[] {
  const changes = Object.entries({ new: added, "back again": returned, renamed, gone: vanished }).flatMap(
    ([what, projects]) => (projects.length > 0 ? [`${projects.length} ${what} (${namesOf(projects)})`] : []),
  );
  const when = isConfirmed ? "taken up" : "the next run takes them up";
  const current = known.filter(({ vanishedAt }) => vanishedAt === undefined).length;
  const doubt = `${waiting.length} of ${current} are missing, more than half (${namesOf(waiting)}): they are read as before until a list an hour or more later lacks them, too; if they are gone, run check --confirm-projects`;
  return [
    ...(changes.length > 0
      ? [{ what: "changes", state: "ok" as const, text: `since the last run ${changes.join(", ")}; ${when}` }]
      : []),
    ...(waiting.length > 0 ? [{ what: "missing", state: "warn" as const, text: doubt }] : []),
  ];
}

const NAMES_SHOWN_MAX = 3;

function namesOf(projects: readonly ListedProject[]): string {
  return firstNames(
    projects.map(({ name }) => name),
    NAMES_SHOWN_MAX,
  );
}

/** Exports that read nothing, as a pattern of them fits no project. */
function patternFindings({ exports, discovery }: Config): Finding[] {
  return exports.flatMap(({ name, projects }) => {
    const patterns = (discovery?.projectsOf[name] ?? []).filter(isPattern);
    if (patterns.length === 0 || projects.length > 0) return [];
    const text = `no project fits ${patterns.map((pattern) => JSON.stringify(pattern)).join(", ")}: the export reads nothing`;
    return [{ what: `export ${name}`, state: "warn" as const, text }];
  });
}
