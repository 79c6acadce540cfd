// The projects in `status`: the worst of them, and with --project what is missing of those that are asked for.

import { type App, readConfig, withDatabase } from "../app.ts";
import { quoteAll } from "../config/messages.ts";
import { matchesPattern } from "../config/project-names.ts";
import { didYouMean } from "../config/suggestions.ts";
import type { ProjectHealth } from "../db/health.ts";
import { AppError } from "../errors.ts";
import { readHealth } from "../health/read-health.ts";
import { type HealthState, worstProjects } from "../health/state.ts";
import { withKnownProjects } from "../jobs/discover.ts";
import { counted } from "../report/format.ts";
import { gapLines } from "./gap-lines.ts";

const WORST_SHOWN = 10;
const FOUND_SHOWN_MAX = 50;

/** The projects that have days that are not complete; nothing of a single project, of which the rest of the answer is. */
export function worstProjectLines(projects: readonly ProjectHealth[]): readonly string[] {
  const incomplete = projects.filter(isIncomplete);
  if (projects.length < 2 || incomplete.length === 0) return [];
  const others = incomplete.length - WORST_SHOWN;
  return [
    `projects: ${incomplete.length} of ${projects.length} have days that are not complete`,
    ...worstProjects(incomplete)
      .slice(0, WORST_SHOWN)
      .map((one) => `  ${projectLine(one)}`),
    ...(others > 0
      ? [`  and ${others} more: status --project NAME shows one of them, and "*" stands for any text`]
      : []),
  ];
}

function isIncomplete({ missing, failed, suspect }: ProjectHealth): boolean {
  return missing + failed + suspect > 0;
}

function projectLine({
  project,
  source,
  series,
  complete,
  missing,
  failed,
  suspect,
  freshThrough,
}: ProjectHealth): string {
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
  const config = await readConfig(app);
  const isAsked = (project: string) => patterns.some((pattern) => matchesPattern(pattern, project));
  const health = await withDatabase(app, async (db) =>
    readHealth(db, await withKnownProjects(config, db), { isShown: isAsked }),
  );
  const names = [...new Set(health.projects.map(({ project }) => project))];
  const unknown = patterns.find((pattern) => !names.some((name) => matchesPattern(pattern, name)));
  if (unknown !== undefined) {
    throw new AppError(
      "config",
      `--project: no project that is read or was read is called ${JSON.stringify(unknown)} (there is ${quoteAll(names) || "none"})${didYouMean(unknown, names)}`,
    );
  }
  const projects = worstProjects(health.projects.filter(({ project }) => isAsked(project)));
  app.write(json ? `${JSON.stringify(answerJson(health, projects))}\n` : answerText(health, projects));
  return projects.some(isIncomplete) ? 1 : 0;
}

function answerJson({ readAt, gaps, gapsLeftOut }: HealthState, projects: readonly ProjectHealth[]) {
  return { readAt, projects, gaps: gaps.map(({ key: _, ...gap }) => gap), gapsLeftOut };
}

function answerText(health: HealthState, projects: readonly ProjectHealth[]): string {
  const others = projects.length - FOUND_SHOWN_MAX;
  const lines = [
    ...projects.slice(0, FOUND_SHOWN_MAX).map(projectLine),
    ...(others > 0 ? [`and ${others} more that have fewer days that are not complete`] : []),
    ...gapLines(health),
  ];
  return `${lines.join("\n")}\n`;
}
