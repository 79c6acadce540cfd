import { expect, test } from "vitest";
import { coverageSection, type StretchHref } from "../../src/report/coverage-section.ts";
import type { Coverage } from "../../src/report/report-data.ts";
import { addDays, type Day, daysOf } from "../../src/usage/days.ts";
import type { SliceStatus } from "../../src/usage/slice.ts";
import { LAST_DAY, makeReportData, makeSeries } from "./make-report-data.ts";

const LETTERS: Readonly<Record<string, SliceStatus>> = { c: "complete", s: "suspect", f: "failed", m: "missing" };

/** A row of letters for each series, the last letter of which is the newest day. */
function coverageOf(rows: readonly string[], gaps: Coverage["gaps"] = []): Coverage {
  const days = daysOf({ start: addDays(LAST_DAY, 1 - (rows[0]?.length ?? 0)), end: LAST_DAY });
  const series = rows.map((row, i) =>
    makeSeries(
      i,
      days,
      [...row].map((letter) => LETTERS[letter]),
    ),
  );
  return { ...makeReportData().coverage, days, series, seriesCount: series.length, gaps };
}

type Cell = {
  readonly status: string;
  readonly days: number;
  readonly text: string;
  readonly href: string | undefined;
};

/** The cells of each row of the map. */
function cellsOf(coverage: Coverage, hrefOf?: StretchHref): readonly (readonly Cell[])[] {
  const body = String(coverageSection({ coverage }, hrefOf).body);
  const [, map = ""] = /<table class="heat[\s\S]*?<tbody>([\s\S]*?)<\/tbody>/.exec(body) ?? [];
  return map
    .split("</tr>")
    .slice(0, -1)
    .map((row) =>
      [
        ...row.matchAll(
          /<td class="([\w-]+)" colspan="(\d+)" title="([^"]*)">(?:<a href="([^"]*)">)?<span class="unseen">([^<]*)/g,
        ),
      ].map(([, status = "", days, title, href, text = ""]) => {
        expect(text).toBe(title);
        return { status, days: Number(days), text, href };
      }),
    );
}

const gapOn = (day: Day, status: "failed" | "missing", error: string | null) => ({
  ...{
    project: "production",
    projectId: "project-0",
    grouping: "none",
    filter: "all",
    start: day,
    end: day,
    status,
    error,
  },
});

test("days with the same status are one cell, as wide as they are many, which says what it is", () => {
  expect(cellsOf(coverageOf(["ccfsmm", "  cccc"]))).toMatchObject([
    [
      { status: "complete", days: 2, text: "complete, 2026-11-15 to 2026-11-16" },
      { status: "failed", days: 1, text: "failed, 2026-11-17" },
      { status: "suspect", days: 1, text: "suspect, 2026-11-18" },
      { status: "missing", days: 2, text: "missing, 2026-11-19 to 2026-11-20" },
    ],
    [
      { status: "not-due", days: 2, text: "not due, 2026-11-15 to 2026-11-16" },
      { status: "complete", days: 4, text: "complete, 2026-11-17 to 2026-11-20" },
    ],
  ]);
});

test("a cell that is not complete says why and leads to its row below; where there is none, and if it is complete, to the given place", () => {
  const gaps = [gapOn("2026-11-20", "missing", null), gapOn("2026-11-18", "failed", 'the service answered "503"')];
  const [first = [], second = []] = cellsOf(coverageOf(["fcfcm", "cccfm"], gaps), (series, { start, status }) =>
    status === undefined ? undefined : `at?${series.grouping}-${status}-${start}`,
  );
  expect(first.map(({ href }) => href)).toEqual([
    ...["at?none-failed-2026-11-16", "at?none-complete-2026-11-17", "#gap-2", "at?none-complete-2026-11-19", "#gap-1"],
  ]);
  expect(first[2]?.text).toBe("failed, 2026-11-18: the service answered &quot;503&quot;");
  // Of another series.
  expect(second.at(-1)).toMatchObject({ href: "at?model-missing-2026-11-20", text: "missing, 2026-11-20" });
  const body = String(coverageSection({ coverage: coverageOf(["fcfcm"], gaps) }).body);
  expect(body).toMatch(/<tr><th scope="row"><span id="gap-2"><time>2026-11-18<\/time>/);
});

test.each([1, 7, 30, 31, 90, 366])(
  "the labels above the map of %i days have all of them, and none is narrow",
  (count) => {
    const body = String(coverageSection({ coverage: coverageOf(["c".repeat(count)]) }).body);
    const spans = [...body.matchAll(/<th scope="col" colspan="(\d+)">/g)].map(([, span]) => Number(span));
    expect(spans.reduce((sum, span) => sum + span, 0)).toBe(count);
    expect(spans.length).toBeLessThanOrEqual(6);
    expect(Math.min(...spans)).toBe(spans[0]);
  },
);

test("a year of sixty series with another status each day is less than 1.5 MB, and only the cells with a row below are links", () => {
  const gaps = [gapOn("2026-11-20", "failed", "no answer"), gapOn("2026-11-16", "failed", null)];
  const coverage = coverageOf(
    Array.from({ length: 60 }, () => `c${"fmsfc".repeat(73)}`),
    gaps,
  );
  const hrefOf = () => "usage?from=2026-11-20&to=2026-11-20&project=production&grouping=model";
  const body = String(coverageSection({ coverage }, hrefOf).body);
  expect(Buffer.byteLength(body)).toBeLessThan(1_500_000);
  expect(body.match(/<a /g)).toHaveLength(1);
  expect(body).toContain('<a href="#gap-2"><span class="unseen">failed, 2026-11-16<');
  expect(body).toContain('<td class="missing" title="missing, 2026-11-17"></td>');
});

test("a year of sixty series with twelve stretches each is less than 300 kB", () => {
  const row = `${"c".repeat(60)}m`.repeat(6);
  const body = String(
    coverageSection({ coverage: coverageOf(Array.from({ length: 60 }, () => row)) }, () => "usage?grouping=model").body,
  );
  expect(Buffer.byteLength(body)).toBeLessThan(300_000);
});
