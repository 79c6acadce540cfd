// The groups with the most usage, as a table with bars. Pure.

import { changeText, chartNumber, counted, exactText, isZero, roundedText } from "./format.ts";
import { columns, groupHtml, type Html, type HtmlValue, html, nameHtml, numberColumns, table } from "./html.ts";
import type { Section } from "./page.ts";
import type { RankedGroup, Ranking } from "./report-data.ts";
import { tooLowFlag, whyNotCompared } from "./summary.ts";

const TITLES = { accessor: "Top accessors", tags: "Top tags" } as const;

export function rankingSection(ranking: Ranking): Section {
  const { grouping, groups, incompleteDays, projects } = ranking;
  const why = whyNotCompared(ranking, projects.length);
  const note =
    why === undefined
      ? undefined
      : html`<p class="note">${incompleteDays > 0 ? html`The figures are ${tooLowFlag(ranking)}. ` : undefined}${why}</p>`;
  return {
    id: `top-${grouping}`,
    title: TITLES[grouping],
    body: html`${explanationNote(ranking)}${note}${
      groups.length === 0
        ? html`<p class="empty">No usage in this period.</p>`
        : rankingTable(ranking, why === undefined)
    }`,
  };
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
  return html`<p class="note">${shown}An accessor is an API key${all.length > 0 ? `; all of them together: ${all.join(", ")}` : ""}.</p>`;
}

/** Ranked by hours if there are any, else by requests. */
function rankingTable({ grouping, groups }: Ranking, compared: boolean): Html {
  const hasHours = groups.some(({ hours }) => hours !== null && !isZero(hours));
  const metric = hasHours ? "hours" : "requests";
  const largest = Math.max(...groups.map((group) => chartNumber(group[metric] ?? "0")));
  const rows = groups.map((group) => [
    groupCell(grouping, group),
    barHtml(chartNumber(group[metric] ?? "0") / largest),
    ...(hasHours ? [amountCell(group.hours)] : []),
    amountCell(group.requests),
    ...(compared ? [changeOf(group, metric)] : []),
    nameHtml(group.project),
  ]);
  return table(
    `The largest by ${metric}${compared ? ", and how they changed" : ""}`,
    [
      ...columns(grouping === "tags" ? "Tags" : "Accessor", `By ${metric}`),
      ...numberColumns(...(hasHours ? ["Hours"] : []), "Requests", ...(compared ? ["Change"] : [])),
      ...columns("Project"),
    ],
    rows,
  );
}

function groupCell(grouping: string, { group, comment }: RankedGroup): Html {
  if (comment === null) return groupHtml(grouping, group);
  return html`${nameHtml(comment)} <small class="key">${groupHtml(grouping, group)}</small>`;
}

function amountCell(value: string | null): HtmlValue {
  return value === null ? "–" : html`<span title="${exactText(value)}">${roundedText(value)}</span>`;
}

function changeOf(group: RankedGroup, metric: "hours" | "requests"): string {
  const amount = group[metric];
  // A group without usage in the period before has no amount there.
  return amount === null ? "–" : changeText(amount, group[`${metric}Before`] ?? "0");
}

/** The width is an attribute, because the page's policy forbids `style` attributes. */
function barHtml(share: number): Html {
  const percent = Number.isFinite(share) ? Math.max(0.5, share * 100).toFixed(1) : "0";
  return html`<svg class="bar" aria-hidden="true"><rect width="${percent}%" height="100%"/></svg>`;
}
