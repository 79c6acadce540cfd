// The gaps as lines of text, the newest first.

import { type GapGroup, groupGaps, type HealthState } from "../health/state.ts";
import { windowText } from "../report/format.ts";
import { seriesText } from "../usage/series.ts";

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

/** The first `max` texts and, if there are more, the text of `rest` with their count. */
export function firstOf(texts: readonly string[], max: number, rest: (more: number) => string): readonly string[] {
  return texts.length > max ? [...texts.slice(0, max), rest(texts.length - max)] : texts;
}
