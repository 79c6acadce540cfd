// Shows a rotation of many projects as one: one job and one state of keys, which say in how many projects what is the case, and not one alert
// for each project. Pure.

import type { Config } from "../config/config.ts";
import { rotationName } from "../config/rotations.ts";
import type { RotationRow } from "../db/keys/status.ts";
import { projectsText } from "../text.ts";
import type { JobHealth } from "./state.ts";

/** A rotation's name in the configuration if it is there for many projects, and the project. */
type GroupMember = { readonly group: string; readonly project: string };

/** Finds the group of a rotation by its name in the ledger. */
export type GroupOf = (rotation: string) => GroupMember | undefined;

export function groupFinder(
  rotations: readonly { readonly name: string; readonly group?: string; readonly project: { readonly name: string } }[],
): GroupOf {
  const members = new Map(
    rotations.flatMap(({ name, group, project }) =>
      group === undefined ? [] : [[name, { group, project: project.name }] as const],
    ),
  );
  return (rotation) => members.get(rotation);
}

/**
 * Finds the groups of the rotations in the ledger. A project that its rotation leaves out belongs to it nevertheless: the service still
 * lists it. The rotations of projects that are gone are one group: each was called after its rotation and its project, and is not configured
 * any more.
 */
export function ledgerGroups(
  { rotations, leftOut = [], rotationTemplates }: Pick<Config, "rotations" | "leftOut" | "rotationTemplates">,
  rows: readonly Pick<RotationRow, "rotation" | "projectId">[],
): GroupOf {
  const left = leftOut.map(({ group, project }) => ({ name: rotationName(group, project), group, project }));
  const groupOf = groupFinder([...rotations, ...left]);
  const configured = new Set(rotations.map(({ name }) => name));
  const ofMany = new Set([
    ...(rotationTemplates?.written ?? []).flatMap(({ name, projects }) => (projects ? [name] : [])),
    ...rows.flatMap(formerGroup),
  ]);
  return (rotation) => {
    const found = groupOf(rotation);
    if (found || configured.has(rotation)) return found;
    const name = prefixesOf(rotation).find((prefix) => ofMany.has(prefix));
    return name === undefined
      ? undefined
      : { group: `${name}, projects that are gone`, project: rotation.slice(name.length + 1) };
  };
}

/** A rotation of many projects that may not be configured any more is known by keys of the project that its name in the ledger ends with. */
function formerGroup({ rotation, projectId }: Pick<RotationRow, "rotation" | "projectId">): readonly string[] {
  const isMember = projectId !== null && rotation.endsWith(`/${projectId}`);
  return isMember ? [rotation.slice(0, -projectId.length - 1)] : [];
}

/** What is before each slash, the longest first. */
function prefixesOf(rotation: string): readonly string[] {
  return [...rotation.matchAll(/\//g)].map(({ index }) => rotation.slice(0, index)).reverse();
}

type Members<Entry> = readonly { readonly entry: Entry; readonly project: string }[];

/** Puts one entry in the place of the first of each group. */
function merged<Entry>(
  entries: readonly Entry[],
  memberOf: (entry: Entry) => GroupMember | undefined,
  merge: (group: string, members: Members<Entry>) => Entry,
): readonly Entry[] {
  const groups = Map.groupBy(entries, (entry) => memberOf(entry)?.group);
  const shown = new Set<string>();
  return entries.flatMap((entry) => {
    const group = memberOf(entry)?.group;
    if (group === undefined) return [entry];
    if (shown.has(group)) return [];
    shown.add(group);
    const members = groups.get(group)?.map((one) => ({ entry: one, project: memberOf(one)?.project ?? "" }));
    return [merge(group, members ?? [])];
  });
}

export function mergeJobs(jobs: readonly JobHealth[], groupOf: GroupOf): readonly JobHealth[] {
  const memberOf = ({ kind, job }: JobHealth) => (kind === "rotation" ? groupOf(job) : undefined);
  return merged(jobs, memberOf, mergeJob);
}

function mergeJob(group: string, members: Members<JobHealth>): JobHealth {
  const jobs = members.map(({ entry }) => entry);
  const [first] = jobs;
  if (!first) throw new Error(`the rotation ${group} has no job`);
  const lastRun = worst(members, (job) => job.lastRun);
  return {
    ...first,
    job: group,
    projects: jobs.length,
    nextRun: earliest(jobs.map(({ nextRun }) => nextRun)),
    firstUnplanned: earliest(jobs.map(({ firstUnplanned }) => firstUnplanned)),
    needsWorker: jobs.some(({ needsWorker }) => needsWorker),
    overdueSince: earliest(jobs.map(({ overdueSince }) => overdueSince)),
    isInProgress: jobs.some(({ isInProgress }) => isInProgress),
    lastRun: lastRun && { ...lastRun, job: group },
    outcome: worst(members, ({ outcome }) => outcome),
    failedRun: worst(members, ({ failedRun }) => failedRun),
    lastSuccess: jobs.reduce<number | null>(
      (longestAgo, { lastSuccess }) =>
        longestAgo === null ? lastSuccess : Math.min(longestAgo, lastSuccess ?? longestAgo),
      null,
    ),
    failures: Math.max(...jobs.map(({ failures }) => failures)),
  };
}

type Ended = { readonly startedAt: Date; readonly status: string; readonly error: string | null };

/** The newest run that went wrong, with the number of projects in its error; if none did, the newest of all. */
function worst<Run extends Ended>(
  members: Members<JobHealth>,
  runOf: (job: JobHealth) => Run | undefined,
): Run | undefined {
  const runs = members.flatMap(({ entry, project }) => {
    const run = runOf(entry);
    return run ? [{ run, project }] : [];
  });
  const bad = runs.filter(({ run }) => run.status === "failed" || run.status === "interrupted");
  const [newest] = (bad.length > 0 ? bad : runs).toSorted(
    (a, b) => b.run.startedAt.getTime() - a.run.startedAt.getTime(),
  );
  if (!newest || bad.length === 0) return newest?.run;
  const where = inProjects(bad, members.length);
  return { ...newest.run, error: newest.run.error === null ? where : `${where}, the newest: ${newest.run.error}` };
}

function earliest(moments: readonly (Date | undefined)[]): Date | undefined {
  const times = moments.flatMap((moment) => moment?.getTime() ?? []);
  return times.length > 0 ? new Date(Math.min(...times)) : undefined;
}

export function mergeRotations(rotations: readonly RotationRow[], groupOf: GroupOf): readonly RotationRow[] {
  return merged(rotations, ({ rotation }) => groupOf(rotation), mergeRotation);
}

function mergeRotation(group: string, members: Members<RotationRow>): RotationRow {
  const rows = members.map(({ entry }) => entry);
  const failing = members.filter(({ entry }) => entry.failedAttempts > 0);
  const worstOne = failing.toSorted((a, b) => b.entry.failedAttempts - a.entry.failedAttempts)[0]?.entry;
  const fallbacks = members.filter(({ entry }) => entry.fallback !== null);
  const fallback = fallbacks.toSorted((a, b) => Number(b.entry.fallbackAt) - Number(a.entry.fallbackAt))[0]?.entry;
  const sum = (state: keyof RotationRow["keys"]) => rows.reduce((total, { keys }) => total + keys[state], 0);
  return {
    rotation: group,
    projects: rows.length,
    // Each project has its own.
    apiKeyId: null,
    projectId: null,
    ageDays: oldest(rows.map(({ ageDays }) => ageDays)),
    ageSeconds: oldest(rows.map(({ ageSeconds }) => ageSeconds)),
    failedAttempts: worstOne?.failedAttempts ?? 0,
    lastError: worstOne ? `${inProjects(failing, rows.length)}, ${worstOne.lastError}` : null,
    fallback: fallback ? `${inProjects(fallbacks, rows.length)}, ${fallback.fallback}` : null,
    fallbackAt: fallback?.fallbackAt ?? null,
    keys: {
      ...{ pending: sum("pending"), active: sum("active"), draining: sum("draining"), orphan: sum("orphan") },
      ...{ dueForRemoval: sum("dueForRemoval"), longDue: sum("longDue") },
    },
  };
}

function inProjects(some: readonly { readonly project: string }[], all: number): string {
  const names = some.map(({ project }) => project);
  return `in ${projectsText(names, all)}`;
}

function oldest(ages: readonly (number | null)[]): number | null {
  const known = ages.flatMap((age) => age ?? []);
  return known.length > 0 ? Math.max(...known) : null;
}
