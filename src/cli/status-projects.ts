// What is missing in `status`: the gaps, the worst projects, and with --project what is missing of those that are asked for.

import type { App } from "../app.ts";
import { loadConfig } from "../config/config.ts";
import { requireKnown } from "../config/messages.ts";
import { matchesPattern } from "../config/patterns.ts";
import { withDatabase } from "../database.ts";
import { type GapGroup, groupGaps, type ProjectHealth, worstProjects } from "../facts/completeness.ts";
import { type HealthState, health as readHealth } from "../facts/health.ts";
import { withKnownProjects } from "../jobs/discover.ts";
import { counted, windowText } from "../show/format.ts";
import { firstOf } from "../text.ts";
import { seriesText } from "../usage/series.ts";

const WORST_SHOWN = 10;
const FOUND_SHOWN_MAX = 50;

/** The projects that have days that are not complete; nothing of a single project, of which the rest of the answer is. */
export function worstProjectLines(projects: readonly ProjectHealth[]): readonly string[] {
  const incomplete = projects.filter(isIncomplete);
  // Usage and billing of a project are two.
  const countOf = (some: readonly ProjectHealth[]) => new Set(some.map(({ project }) => project)).size;
  if (countOf(projects) < 2 || incomplete.length === 0) return [];
  const lines = worstProjects(incomplete).map((one) => `  ${projectLine(one)}`);
  const rest = 'status --project NAME shows one of them, and "*" stands for any text';
  return [
    `projects: ${countOf(incomplete)} of ${countOf(projects)} have days that are not complete`,
    ...firstOf(lines, WORST_SHOWN, (more) => `  and ${more} more: ${rest}`),
  ];
}

function isIncomplete({ missing, failed, suspect }: ProjectHealth): boolean {
  return missing + failed + suspect > 0;
}

function projectLine({ project, source, series, complete, freshThrough, ...lacking }: ProjectHealth): string {
  const { missing, failed, suspect } = lacking;
  const counts = Object.entries({ missing, failed, suspect }).flatMap(([status, count]) =>
    count > 0 ? `${count} ${status}` : [],
  );
  const fresh = freshThrough === null ? "no day is due" : `nothing missing through ${freshThrough}`;
  return `${project}${source === "usage" ? "" : ` (${source})`}: ${counted(series, "series", "series")}, ${[`${complete} complete`, ...counts].join(", ")}; ${fresh}`;
}

export type StatusOptions = { readonly project?: readonly string[]; readonly json?: boolean };

/** Exit status 1 if a day of these projects is not complete. */
export async function runStatusOfProjects(
  app: App,
  patterns: readonly string[],
  { json }: StatusOptions,
): Promise<number> {
  const config = await loadConfig(app.configPath);
  const isAsked = (project: string) => patterns.some((pattern) => matchesPattern(pattern, project));
  const health = await withDatabase(app, async (db) =>
    readHealth(db, await withKnownProjects(config, db), { isShown: isAsked }),
  );
  const names = [...new Set(health.projects.map(({ project }) => project))];
  const unknown = patterns.filter((pattern) => !names.some((name) => matchesPattern(pattern, name)));
  requireKnown("--project", unknown, names, (name) => `no project that is read or was read is called ${name}`);
  const projects = worstProjects(health.projects.filter(({ project }) => isAsked(project)));
  app.write(json ? `${JSON.stringify(answerJson(health, projects))}\n` : answerText(health, projects));
  return projects.some(isIncomplete) ? 1 : 0;
}

function answerJson({ readAt, gaps, gapsLeftOut }: HealthState, projects: readonly ProjectHealth[]) {
  return { readAt, projects, gaps, gapsLeftOut };
}

function answerText(health: HealthState, projects: readonly ProjectHealth[]): string {
  const rest = (more: number) => `and ${more} more that have fewer days that are not complete`;
  const lines = [...firstOf(projects.map(projectLine), FOUND_SHOWN_MAX, rest), ...gapLines(health)];
  return `${lines.join("\n")}\n`;
}

// The gaps as lines of text, the newest first.

const GAPS_SHOWN_MAX = 20;
const SERIES_SHOWN_MAX = 3;

export function gapLines({ gaps, gapsLeftOut }: Pick<HealthState, "gaps" | "gapsLeftOut">): readonly string[] {
  const groups = groupGaps(gaps);
  const more = Math.max(groups.length - GAPS_SHOWN_MAX, 0) + gapsLeftOut;
  return [
    ...groups.slice(0, GAPS_SHOWN_MAX).map(renderGap),
    ...(more > 0 ? [`  and ${more} more: see bi.coverage_gaps`] : []),
  ];
}

function renderGap({ status, series, from, to, error }: GapGroup): string {
  const names = firstOf(series.map(seriesText), SERIES_SHOWN_MAX, (more) => `and ${more} more series`);
  const days = windowText({ start: from, end: to });
  return `  ${status}: ${names.join(", ")}, ${days}${error === null ? "" : `: ${error}`}`;
}
