// The data of a report in which every text from outside is one of HOSTILE_NAMES.

import type { ReportData } from "../../src/report/report-data.ts";
import { HOSTILE_NAMES } from "./hostile-names.ts";
import { makeCost, makeCostPart, makeGroup, makeTroubledData } from "./make-report-data.ts";

const name = (i: number): string => HOSTILE_NAMES[i % HOSTILE_NAMES.length] ?? "";

/** `shift` is the index of the first name to use. With several shifts every name is used for every text. */
export function makeHostileData(shift: number): ReportData {
  const data = makeTroubledData({ days: 14, groups: 12, series: 12 });
  const { breakdowns, change, rankings, coverage, restatements, totals } = data;
  return {
    ...data,
    totals: { ...totals, sources: [{ project: name(shift), grouping: "none" }], projectsLeftOut: [name(shift + 1)] },
    change: {
      ...change,
      metrics: change.metrics.map((metric) => ({
        ...metric,
        breakdowns: metric.breakdowns.map((one) => ({
          ...one,
          parts: one.parts.map((part, i) =>
            part.part === "group" ? { ...part, group: name(shift + i), project: name(shift + i + 1) } : part,
          ),
        })),
      })),
    },
    costs: [
      makeCost({
        parts: HOSTILE_NAMES.map((_, i) => makeCostPart({ group: name(shift + i), change: "1", volume: "1" })),
      }),
    ],
    breakdowns: breakdowns.map((one) => ({
      ...one,
      projects: [name(shift), name(shift + 1)],
      groups: [null, ...Array.from({ length: 7 }, (_, i) => name(shift + i))].map((group, i) =>
        makeGroup(group, i, one.days),
      ),
    })),
    rankings: rankings.map((one) => ({
      ...one,
      groups: one.groups.map((group, i) => ({
        ...group,
        project: name(shift + i),
        group: one.grouping === "tags" ? JSON.stringify([name(shift + i), null, name(shift + i + 1)]) : name(shift + i),
        comment: name(shift + i + 3),
      })),
    })),
    coverage: {
      ...coverage,
      series: coverage.series.map((one, i) => ({ ...one, project: name(shift + i), filter: name(shift + 2 * i) })),
      gaps: coverage.gaps.map((one, i) => ({
        ...one,
        project: name(shift + i),
        filter: name(shift + i),
        error: name(shift + i),
      })),
    },
    restatements: {
      ...restatements,
      sources: [{ project: name(shift), grouping: "none" }],
      largest: restatements.largest.map((one, i) => ({
        ...one,
        project: name(shift + i),
        group: name(shift + i),
        metric: name(shift + i),
      })),
    },
  };
}
