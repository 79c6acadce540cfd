// The groups with the most usage, as a table with bars. Pure.

import { changeText, chartNumber, counted, exactText, isZero, roundedText } from "./format.ts";
import { columns, groupHtml, type Html, type HtmlValue, html, nameHtml, numberColumns, table } from "./html.ts";
import type { Section } from "./page.ts";
import type { RankedGroup, Ranking, Totals } from "./report-data.ts";
import { RANKING_TITLES, tooLowFlag, whyNotCompared } from "./summary.ts";

export function rankingSection(ranking: Ranking): Section {
  const { grouping, groups, incompleteDays, projects } = ranking;
  const why = whyNotCompared(ranking, projects.length);
  const note =
    why === undefined
      ? undefined
      : html`<p class="note">${incompleteDays > 0 ? html`The figures are ${tooLowFlag(ranking)}. ` : undefined}${why}</p>`;
  return {
    id: `top-${grouping}`,
    title: RANKING_TITLES[grouping],
    body: html`${explanationNote(ranking)}${note}${
      groups.length === 0
        ? html`<p class="empty">No usage in this period.</p>`
        : rankingTable(ranking, why === undefined)
    }`,
  };
}

/** What the headline figures have and the usage by this grouping has not. Undefined if that is nothing. */
export function lessThanTotalNote(
  { grouping, projects, unreadDays }: Pick<Ranking, "projects" | "unreadDays"> & { readonly grouping: string },
  { sources }: Pick<Totals, "sources">,
): Html | undefined {
  const others = sources.filter(({ project }) => !projects.includes(project)).length;
  const lacking = [
    ...(unreadDays > 0
      ? [`${counted(unreadDays, "day")} of this period${projects.length > 1 ? " (counted for each project)" : ""}`]
      : []),
    ...(others > 0 ? [`${others} of ${counted(sources.length, "project")}`] : []),
  ];
  if (lacking.length === 0) return undefined;
  return html`<p class="note">Not read by ${grouping}, so not in these figures: ${lacking.join("; ")}.</p>`;
}

function explanationNote({ grouping, groups, groupCount, hours, requests }: Ranking): Html {
  const shown = groupCount > groups.length ? `The ${groups.length} largest of ${counted(groupCount, "group")}. ` : "";
  if (grouping === "tags") {
    return html`<p class="note">${shown}A row is a set of tags as the service sent it. Tags overlap, as a request can carry several: the rows do not add up to a total.</p>`;
  }
  const all = [
    ...(hours === null ? [] : [`${roundedText(hours)} hours`]),
    ...(requests === null ? [] : [`${roundedText(requests)} requests`]),
  ];
  if (grouping === "model") return html`<p class="note">${shown}</p>`;
  return html`<p class="note">${shown}An accessor is an API key${all.length > 0 ? `; all of them together: ${all.join(", ")}` : ""}.</p>`;
}

type RankedMetric = "hours" | "requests";

/** Ranked by hours if there are any, else by requests. */
export function rankedMetric({ groups }: Ranking): RankedMetric {
  return groups.some(({ hours }) => hours !== null && !isZero(hours)) ? "hours" : "requests";
}

export const GROUP_TITLES = { model: "Model", accessor: "Key", tags: "Tags" } as const;

function rankingTable(ranking: Ranking, compared: boolean): Html {
  const { grouping, groups } = ranking;
  const metric = rankedMetric(ranking);
  const hasHours = metric === "hours";
  const rows = groups.map((group) => [
    groupCell(grouping, group),
    barOf(group, groups, metric),
    ...(hasHours ? [amountCell(group.hours)] : []),
    amountCell(group.requests),
    ...(compared ? [changeOf(group, metric)] : []),
    nameHtml(group.project),
  ]);
  return table(
    `The largest by ${metric}${compared ? ", and how they changed" : ""}`,
    [
      ...columns(GROUP_TITLES[grouping], `By ${metric}`),
      ...numberColumns(...(hasHours ? ["Hours"] : []), "Requests", ...(compared ? ["Change"] : [])),
      ...columns("Project"),
    ],
    rows,
  );
}

export function barOf(group: RankedGroup, groups: readonly RankedGroup[], metric: RankedMetric): Html {
  const largest = Math.max(...groups.map((one) => chartNumber(one[metric] ?? "0")));
  return shareBar(chartNumber(group[metric] ?? "0") / largest);
}

/** The width is an attribute, because the page's policy forbids `style` attributes. */
export function shareBar(share: number): Html {
  const percent = Number.isFinite(share) ? Math.max(0.5, share * 100).toFixed(1) : "0";
  return html`<svg class="share" aria-hidden="true"><rect width="${percent}%" height="100%"/></svg>`;
}

function groupCell(grouping: string, { group, comment }: RankedGroup): Html {
  if (comment === null) return groupHtml(grouping, group);
  return html`${nameHtml(comment)} <small class="key">${groupHtml(grouping, group)}</small>`;
}

function amountCell(value: string | null): HtmlValue {
  return value === null ? "–" : html`<span title="${exactText(value)}">${roundedText(value)}</span>`;
}

export function changeOf(group: RankedGroup, metric: RankedMetric): string {
  const amount = group[metric];
  // A group without usage in the period before has no amount there.
  return amount === null ? "–" : changeText(amount, group[`${metric}Before`] ?? "0");
}
