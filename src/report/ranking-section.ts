// Who used most: a table with bars. Pure.

import { change, counted, drawn, exact, isZero, rounded } from "./figures.ts";
import { type Filling, type Html, html } from "./html.ts";
import { groupHtml, nameHtml } from "./names.ts";
import type { Section } from "./page.ts";
import type { RankedGroup, Ranking } from "./report-data.ts";
import { notCompared, tooLowFlag } from "./shortfall.ts";
import { table } from "./table.ts";

const TITLES = { accessor: "Top accessors", tags: "Top tags" } as const;

export function rankingSection(ranking: Ranking): Section {
  const { grouping, groups, incompleteDays, projects } = ranking;
  const why = notCompared(ranking, projects.length);
  const note =
    why === undefined
      ? undefined
      : html`<p class="note">${incompleteDays > 0 ? html`The figures are ${tooLowFlag(ranking)}. ` : undefined}${why}</p>`;
  return {
    id: `top-${grouping}`,
    title: TITLES[grouping],
    body: html`${explanation(ranking)}${note}${
      groups.length === 0
        ? html`<p class="empty">No usage in this period.</p>`
        : rankingTable(ranking, why === undefined)
    }`,
  };
}

function explanation({ grouping, groups, groupCount, hours, requests }: Ranking): Html {
  const shown = groupCount > groups.length ? `The ${groups.length} largest of ${counted(groupCount, "group")}. ` : "";
  if (grouping === "tags") {
    return html`<p class="note">${shown}A row is a set of tags as the service sent it. Tags overlap, as a request can carry several: the rows do not add up to a total.</p>`;
  }
  const all = [
    hours === null ? [] : [`${rounded(hours)} hours`],
    requests === null ? [] : [`${rounded(requests)} requests`],
  ].flat();
  return html`<p class="note">${shown}An accessor is an API key${all.length > 0 ? `; all of them together: ${all.join(", ")}` : ""}.</p>`;
}

function rankingTable({ grouping, groups }: Ranking, compared: boolean): Html {
  const hours = groups.some((group) => group.hours !== null && !isZero(group.hours));
  const columns = [
    { title: grouping === "tags" ? "Tags" : "Accessor" },
    { title: hours ? "By hours" : "By requests" },
    ...(hours ? [{ title: "Hours", numeric: true }] : []),
    { title: "Requests", numeric: true },
    ...(compared ? [{ title: "Change", numeric: true }] : []),
    { title: "Project" },
  ];
  const largest = Math.max(...groups.map((group) => drawn((hours ? group.hours : group.requests) ?? "0")));
  const rows = groups.map((group) => [
    named(grouping, group),
    bar(drawn((hours ? group.hours : group.requests) ?? "0") / largest),
    ...(hours ? [amount(group.hours)] : []),
    amount(group.requests),
    ...(compared ? [changeOf(group, hours)] : []),
    nameHtml(group.project),
  ]);
  const metric = hours ? "hours" : "requests";
  return table(`The largest by ${metric}${compared ? ", and how they changed" : ""}`, columns, rows);
}

function named(grouping: string, { group, comment }: RankedGroup): Html {
  if (comment === null) return groupHtml(grouping, group);
  return html`${nameHtml(comment)} <small class="key">${groupHtml(grouping, group)}</small>`;
}

function amount(value: string | null): Filling {
  return value === null ? "–" : html`<span title="${exact(value)}">${rounded(value)}</span>`;
}

function changeOf({ hours, hoursBefore, requests, requestsBefore }: RankedGroup, byHours: boolean): string {
  const now = byHours ? hours : requests;
  // A group that was not there before has no row there.
  return now === null ? "–" : change(now, (byHours ? hoursBefore : requestsBefore) ?? "0");
}

/** The width is in attributes, as the page's policy lets no element carry a style of its own. */
function bar(share: number): Html {
  const percent = Number.isFinite(share) ? Math.max(0.5, share * 100).toFixed(1) : "0";
  return html`<svg class="bar" aria-hidden="true"><rect width="${percent}%" height="100%"/></svg>`;
}
