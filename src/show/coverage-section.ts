// Which days of each project were read: a strip of days for each, and what lacks. Pure.

import {
  type Coverage,
  type CoverageGap,
  DAY_QUALITIES,
  type DayQuality,
  type ProjectCoverage,
} from "../facts/coverage.ts";
import { type Day, dayCount, daysOf, type Window } from "../usage/days.ts";
import { groupingNoun } from "../usage/dimensions.ts";
import type { SeriesName } from "../usage/series.ts";
import { counted, instantText, periodText } from "./format.ts";
import { columns, folded, type Html, html, nameHtml, table } from "./html.ts";
import type { Section } from "./page.ts";

/** What people read for the state of a day; of one that was not due there is none. */
const QUALITY_WORDS: Readonly<Record<DayQuality | "not-due", string>> = {
  complete: "complete",
  stale: "older numbers, as the newest reading failed",
  suspect: "in doubt: the newest answer was empty or much lower, so earlier numbers are shown",
  missing: "no numbers",
  "not-due": "not due",
};

/** Leads to the usage of a project on some days. */
export type UsageHref = (project: ProjectCoverage, days: Window) => string;

export function coverageSection(coverage: Coverage, usageHref: UsageHref): Section {
  return { id: "gaps", title: "Projects", body: bodyOf(coverage, usageHref) };
}

const COLUMNS = columns("Project", "Days", "All in up to", "Last read");
/** An outage makes the same row for each project. */
const UNFOLDED_MAX = 12;

function bodyOf({ period, projects, projectCount, undated }: Coverage, usageHref: UsageHref): Html {
  if (projects.length === 0) return html`<p class="empty">No project is read yet.</p>`;
  const hasGaps = projects.some(({ gaps }) => gaps.length > 0);
  const titles = hasGaps ? [...COLUMNS, ...columns("What lacks")] : COLUMNS;
  const rows = projects.map((one) => [
    html`<a href="${usageHref(one, period)}">${nameHtml(one.project)}</a>`,
    strip(period, one),
    one.freshThrough ?? "never",
    one.fetchedAt === null ? "never" : instantText(one.fetchedAt),
    ...(hasGaps ? [gapsHtml(one)] : []),
  ]);
  const more = projectCount - projects.length;
  const keys = [...DAY_QUALITIES, "not-due" as const].filter((quality) =>
    projects.some(({ days }) => isShown(period, days, quality)),
  );
  const key = html`<p class="note key">${keys.map((quality) => html`<span><span class="swatch ${quality}"></span>${QUALITY_WORDS[quality]}</span> `)}</p>`;
  return html`${undatedHtml(undated)}${keys.some((one) => one !== "complete") ? key : html`<p class="note">Every day is complete.</p>`}
${table(`Days from ${periodText(period)}, the projects that lack the most first`, titles, rows.slice(0, UNFOLDED_MAX))}${
  rows.length > UNFOLDED_MAX
    ? folded(
        counted(rows.length - UNFOLDED_MAX, "more project"),
        table("More projects", titles, rows.slice(UNFOLDED_MAX)),
      )
    : undefined
}${
  more > 0
    ? html`<p class="note">${counted(more, "project")} not shown: those shown lack the most. Choose one above.</p>`
    : undefined
}`;
}

function isShown(period: Window, days: ProjectCoverage["days"], quality: DayQuality | "not-due"): boolean {
  if (quality === "not-due") return daysOf(period).some((day) => days[day] === undefined);
  return Object.values(days).includes(quality);
}

function undatedHtml(undated: Coverage["undated"]): Html | undefined {
  if (undated.length === 0) return undefined;
  const names = undated.map((one, i) => html`${i > 0 ? "; " : undefined}${seriesHtml(one)}`);
  return html`<p class="note">The service's answers about ${names} carry no date. It is not known which days those numbers are of, so no figure contains them; the view <code>bi.usage_snapshot</code> has them.</p>
`;
}

/** The days as one bar, a rectangle for each stretch of the same state. */
function strip(period: Window, { days, project }: ProjectCoverage): Html {
  const all = daysOf(period);
  const percent = (count: number) => `${((count * 100) / all.length).toFixed(3)}%`;
  let at = 0;
  const parts = stretchesOf(all, days).map((stretch) => {
    const count = dayCount(stretch);
    const text = `${periodText(stretch)}: ${QUALITY_WORDS[stretch.quality]}`;
    const part = html`<rect class="${stretch.quality}" x="${percent(at)}" width="${percent(count)}" height="100%"><title>${text}</title></rect>`;
    at += count;
    return part;
  });
  const lacking = all.filter((day) => (days[day] ?? "complete") !== "complete").length;
  const label = lacking === 0 ? "all complete" : `${counted(lacking, "day")} not complete`;
  return html`<svg class="strip" role="img" aria-label="${project}: ${label}">${parts}</svg>`;
}

function stretchesOf(all: readonly Day[], days: ProjectCoverage["days"]) {
  const stretches: (Window & { quality: DayQuality | "not-due" })[] = [];
  for (const day of all) {
    const quality = days[day] ?? "not-due";
    const last = stretches.at(-1);
    if (last?.quality === quality) stretches[stretches.length - 1] = { ...last, end: day };
    else stretches.push({ start: day, end: day, quality });
  }
  return stretches;
}

function gapsHtml({ gaps }: ProjectCoverage): Html | undefined {
  if (gaps.length === 0) return undefined;
  const items = gaps.map(
    (gap) =>
      html`<li>${gapName(gap)}, ${periodText(gap)}: ${QUALITY_WORDS[gap.quality]}${gap.error === null ? undefined : html`. <bdi>${gap.error}</bdi>`}</li>`,
  );
  return html`<details><summary>${counted(gaps.length, "gap")}</summary><ul>${items}</ul></details>`;
}

function gapName({ source, grouping, filter }: CoverageGap): Html {
  const what = source === "billing" ? "billed cost" : "usage";
  const by = grouping === "none" ? "total" : `by ${groupingNoun(grouping)}`;
  return html`${what} ${by}${filter === "all" ? undefined : html`, ${nameHtml(filter)}`}`;
}

export function seriesHtml({ project, source = "usage", grouping, filter }: SeriesName): Html {
  const of = source === "usage" ? "" : `${source} `;
  const by = grouping === "none" ? "total" : `by ${groupingNoun(grouping)}`;
  return html`${nameHtml(project)}, ${of}${by}${filter === "all" ? undefined : html`, ${nameHtml(filter)}`}`;
}
