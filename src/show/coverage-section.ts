// What was read and what was not: a map of series and days, and a table of the stretches of days that are not complete. Pure.

import type { Coverage, CoverageGap, SeriesCoverage } from "../facts/coverage.ts";
import { type Day, dayCount, daysOf, type Window } from "../usage/days.ts";
import type { SeriesName } from "../usage/series.ts";
import { SLICE_STATUSES, type SliceStatus } from "../usage/slice.ts";
import { counted, dayLabel, instantText, windowHtml, windowText } from "./format.ts";
import {
  columns,
  folded,
  type Html,
  html,
  nameHtml,
  numberColumns,
  table,
  truncatedName,
  trustedHtml,
} from "./html.ts";
import type { Section } from "./page.ts";

/** Days of a series with the same status; undefined if they were neither due nor read. */
type Stretch = Window & { readonly status: SliceStatus | undefined };

/** Two projects may have the same name. */
type KnownSeries = SeriesName & { readonly projectId: string };

/** Leads to what explains a stretch of a series; undefined if nothing does. */
export type StretchHref = (series: KnownSeries, stretch: Stretch) => string | undefined;

/** `hrefOf` is for the stretches that are not in the section's own table of what is not complete. */
export function coverageSection(coverage: Coverage, hrefOf: StretchHref): Section {
  return {
    id: "coverage",
    title: "Coverage",
    body: coverage.series.length === 0 ? html`<p class="empty">No series is read yet.</p>` : bodyOf(coverage, hrefOf),
  };
}

function bodyOf(coverage: Coverage, hrefOf: StretchHref): Html {
  const { series, seriesCount, undated } = coverage;
  const seriesLeftOut = seriesCount - series.length;
  const more =
    seriesLeftOut > 0
      ? html`<p class="note">${counted(seriesLeftOut, "more series", "more series")} not shown: those shown lack the most days.</p>`
      : undefined;
  return html`<p class="note">A series is a project, what its usage is grouped by, and a filter. Not due are days before it began, and days whose first export is still to come.</p>
${undatedNote(undated)}${coverageMap(coverage, hrefOf)}${more}${freshnessTable(series)}${gapsTable(coverage)}`;
}

const UNDATED_SHOWN_MAX = 20;

function undatedNote(undated: Coverage["undated"]): Html | undefined {
  if (undated.length === 0) return undefined;
  const names = undated.slice(0, UNDATED_SHOWN_MAX).map((one) => html`<li>${seriesHtml(one)}</li>`);
  const more = undated.length - UNDATED_SHOWN_MAX;
  return html`<p class="note">The service's answers about ${counted(undated.length, "series", "series")} carry no date. It is not known which days those numbers are of, so no figure on this page contains them; the view <code>bi.usage_snapshot</code> has them:</p>
<ul class="note">${names}${more > 0 ? html`<li>and ${more} more</li>` : undefined}</ul>
`;
}

/** What a day is that has no status. */
const NOT_DUE = "not-due";
/** More days need more width than a phone has: the map then scrolls in its box. */
const DAYS_NARROW_MAX = 120;
/** As many as fit beside each other on a phone. */
const LABELS_MAX = 4;
const ERROR_COLUMNS = 160;
/** Of more stretches, only those lead somewhere that have a row in the table below: thousands of links are slow, and long to tab through. */
const STRETCHES_LINKED_MAX = 1_000;

/** A row for each series, and a cell for each stretch of days with the same status, which is as wide as it is long. */
function coverageMap({ period, series, gaps }: Coverage, hrefOf: StretchHref): Html {
  const days = daysOf(period);
  const statuses = [...SLICE_STATUSES, NOT_DUE].map(
    (status) => html`<span><span class="swatch ${status}"></span>${status.replace("-", " ")}</span> `,
  );
  const stretches = series.map((one) => stretchesOf(days, one.statuses));
  const isDense = stretches.reduce((sum, { length }) => sum + length, 0) > STRETCHES_LINKED_MAX;
  const rows = series.map((one, row) => {
    const ownGaps = gaps.flatMap((gap, i) => (isSame(gap, one) ? [{ ...gap, id: gapId(i) }] : []));
    // A stretch that is not complete leads to its row of the table below, which says why.
    const cells = stretches[row]?.map((stretch) => {
      const gap = ownGaps.find((other) => isOf(other, stretch));
      if (gap) return linkedCell(stretch, gap.error, `#${gap.id}`);
      return isDense ? plainCell(stretch) : linkedCell(stretch, null, hrefOf(one, stretch));
    });
    return html`<tr><th scope="row"><span>${seriesHtml(one)}</span></th>${cells}</tr>\n`;
  });
  return html`<p class="note key">${statuses}</p>
<div class="scroll" role="group" aria-label="Series and days" tabindex="0"><table class="heat${days.length > DAYS_NARROW_MAX ? " long" : ""}">
<caption class="unseen">Series and days</caption>
<colgroup><col><col span="${days.length}"></colgroup>
<thead><tr><th scope="col">Series</th>${dayLabels(days)}</tr></thead>
<tbody>
${rows}</tbody>
</table></div>
`;
}

/** Each stands above its first day. The last has the remaining days too, so that none is narrower than its label. */
function dayLabels(days: readonly Day[]): readonly Html[] {
  const step = Math.ceil(days.length / LABELS_MAX);
  return days
    .filter((_, i) => i % step === 0 && (i === 0 || i + step <= days.length))
    .map((day, i, { length }) => {
      const span = i === length - 1 ? days.length - i * step : step;
      return html`<th scope="col" colspan="${span}">${dayLabel(day)}</th>`;
    });
}

function stretchesOf(days: readonly Day[], statuses: SeriesCoverage["statuses"]): readonly Stretch[] {
  const stretches: Stretch[] = [];
  for (const day of days) {
    const last = stretches.at(-1);
    if (last && last.status === statuses[day]) stretches[stretches.length - 1] = { ...last, end: day };
    else stretches.push({ start: day, end: day, status: statuses[day] });
  }
  return stretches;
}

/** `href` is the row of the table below that has the `error`, or what explains the stretch; without it the cell is no link. */
function linkedCell(stretch: Stretch, error: string | null, href: string | undefined): Html {
  const { status = NOT_DUE } = stretch;
  const text = `${stretchText(stretch)}${error ? `: ${truncatedName(error, ERROR_COLUMNS)}` : ""}`;
  const shown = html`<span class="unseen">${text}</span>`;
  return html`<td class="${status}" colspan="${dayCount(stretch)}" title="${text}">${href === undefined ? shown : html`<a href="${href}">${shown}</a>`}</td>`;
}

/** As short as it can be, for maps with tens of thousands of cells. Nothing in it is from outside. */
function plainCell(stretch: Stretch): Html {
  const { status = NOT_DUE, start, end } = stretch;
  const colspan = start === end ? "" : ` colspan="${dayCount(stretch)}"`;
  return trustedHtml(`<td class="${status}"${colspan} title="${stretchText(stretch)}"></td>`);
}

function stretchText(stretch: Stretch): string {
  return `${(stretch.status ?? NOT_DUE).replace("-", " ")}, ${windowText(stretch)}`;
}

function isOf(gap: CoverageGap, { status, start, end }: Stretch): boolean {
  return gap.status === status && gap.start <= end && gap.end >= start;
}

function isSame(one: KnownSeries, other: KnownSeries): boolean {
  return one.projectId === other.projectId && one.grouping === other.grouping && one.filter === other.filter;
}

function gapId(index: number): string {
  return `gap-${index + 1}`;
}

function shortGrouping(grouping: string): string {
  return grouping === "none" ? "total" : grouping;
}

export function seriesHtml({ project, source = "usage", grouping, filter }: SeriesName): Html {
  const of = source === "usage" ? "" : `${source} `;
  return html`${nameHtml(project)} · ${of}${shortGrouping(grouping)}${filter === "all" ? undefined : html` · ${nameHtml(filter)}`}`;
}

function freshnessTable(series: readonly SeriesCoverage[]): Html {
  const titles = [
    ...columns("Series", "Nothing missing through", "Due through", "Last read"),
    ...numberColumns(...SLICE_STATUSES.map((status) => `Days ${status}`)),
  ];
  const rows = series.map((one) => [
    seriesHtml(one),
    one.freshThrough ?? "never",
    one.dueThrough ?? "nothing due",
    one.fetchedAt === null ? "never" : instantText(one.fetchedAt),
    ...SLICE_STATUSES.map((status) => String(Object.values(one.statuses).filter((other) => other === status).length)),
  ]);
  return folded("Table: how fresh each series is", table("Freshness by series", titles, rows));
}

function gapsTable({ gaps, gapsLeftOut }: Coverage): Html | undefined {
  if (gaps.length === 0) return undefined;
  const rows = gaps.map((gap, i) => [
    html`<span id="${gapId(i)}">${windowHtml(gap)}</span>`,
    seriesHtml(gap),
    html`<b class="status ${gap.status}">${gap.status}</b>`,
    gap.error === null ? "–" : html`<bdi>${gap.error}</bdi>`,
  ]);
  const more =
    gapsLeftOut > 0
      ? html`<p class="note">${counted(gapsLeftOut, "older stretch", "older stretches")} not shown.</p>`
      : undefined;
  return html`<h3>What is not complete</h3>
${table("Stretches of days, the newest first", columns("Days", "Series", "Status", "Why"), rows)}${more}`;
}
