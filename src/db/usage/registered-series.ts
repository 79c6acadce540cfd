// Reads the stored series, and tells whether they are as configured. Thousands of projects have tens of thousands of series: they are
// read as groups of series that differ by their project alone, because a row and an object of each would take seconds.

import { sql } from "kysely";
import type { ConfiguredSeries } from "../../usage/plan.ts";
import { filterKey, type Series } from "../../usage/series.ts";
import type { Database } from "../connection/database.ts";
import type { Tx } from "../connection/transaction.ts";

/** By seriesKey, the id of the series. */
export type SeriesIds = ReadonlyMap<string, number>;

export type StoredSeries = {
  readonly source: string;
  readonly grouping: string;
  readonly filterKey: string;
  readonly filter: string;
  readonly windowDays: number | null;
  readonly isRetired: boolean;
  readonly isHidden: boolean;
  /** Whether the current period is what it should be: that of the series' names, and none if the series is hidden. */
  readonly hasPeriod: boolean;
  readonly seriesIds: readonly number[];
  /** The project of each of `seriesIds`, and its name. */
  readonly projectIds: readonly string[];
  readonly projects: readonly string[];
};

export async function readStoredSeries(db: Database | Tx): Promise<readonly StoredSeries[]> {
  const { rows } = await sql<StoredSeries>`
    select s.source, s."grouping", s.filter_key as "filterKey", s.filter, s.window_days as "windowDays",
      s.retired_at is not null as "isRetired", s.superseded_at is not null as "isHidden",
      case when s.superseded_at is null then (p.project, p.filter) is not distinct from (s.project, s.filter)
        else p.series_id is null end as "hasPeriod",
      json_agg(s.series_id) as "seriesIds", json_agg(s.project_id) as "projectIds", json_agg(s.project) as projects
    from usage_export.series s
    left join usage_export.series_period p on p.series_id = s.series_id and p.shown_until is null
    group by 1, 2, 3, 4, 5, 6, 7, 8
  `.execute(db);
  return rows;
}

export function idsOf(stored: readonly StoredSeries[]): SeriesIds {
  const ids = new Map<string, number>();
  for (const { source, grouping, filterKey, seriesIds, projectIds } of stored) {
    // As seriesKey writes it.
    const [before, after] = [JSON.stringify([source]).slice(0, -1), JSON.stringify([grouping, filterKey]).slice(1)];
    for (const [i, id] of seriesIds.entries()) ids.set(`${before},${JSON.stringify(projectIds[i])},${after}`, id);
  }
  return ids;
}

/** Whether registering the configured series would change nothing. */
export function isRegistered(stored: readonly StoredSeries[], configured: readonly ConfiguredSeries[]): boolean {
  const wanted = wantedByProject(configured);
  let names: FilterNames | undefined;
  let found = 0;
  for (const group of stored) {
    if (!group.hasPeriod) return false;
    const ofGroup = wanted.get(partsText(group.source, group.grouping, group.filterKey));
    for (const [i, projectId] of group.projectIds.entries()) {
      const one = ofGroup?.get(projectId);
      if (one === undefined) {
        names ??= filterNames(configured);
        if (!isRetiredWell(group, projectId, names)) return false;
      } else if (isAsConfigured(group, group.projects[i], one)) {
        found++;
      } else {
        return false;
      }
    }
  }
  return found === [...wanted.values()].reduce((sum, { size }) => sum + size, 0);
}

function partsText(source: string, grouping: string, key: string): string {
  return `${source} ${grouping} ${key}`;
}

function wantedByProject(configured: readonly ConfiguredSeries[]): ReadonlyMap<string, Map<string, ConfiguredSeries>> {
  const wanted = new Map<string, Map<string, ConfiguredSeries>>();
  for (const one of configured) {
    const { source, grouping, filter, project } = one.series;
    const parts = partsText(source, grouping, filterKey(filter));
    const ofParts = wanted.get(parts) ?? new Map<string, ConfiguredSeries>();
    wanted.set(parts, ofParts.set(project.id, one));
  }
  return wanted;
}

function isAsConfigured(group: StoredSeries, project: string | undefined, one: ConfiguredSeries): boolean {
  const { series, windowDays = null } = one;
  const hasNames = project === series.project.name && group.filter === series.filter.name;
  return hasNames && group.windowDays === windowDays && !group.isRetired && !group.isHidden;
}

type FilterNames = {
  /** By source, project and conditions, the configured name of the filter. */
  readonly byConditions: ReadonlyMap<string, string>;
  /** Source, project and name of each configured filter. */
  readonly taken: ReadonlySet<string>;
};

function filterNames(configured: readonly ConfiguredSeries[]): FilterNames {
  const filters = configured.map(({ series }) => series);
  const text = ({ source, project }: Series, part: string) => JSON.stringify([source, project.id, part]);
  return {
    byConditions: new Map(filters.map((one) => [text(one, filterKey(one.filter)), one.filter.name])),
    taken: new Set(filters.map((one) => text(one, one.filter.name))),
  };
}

/** Whether a series that is not configured is left as it should be: retired, and hidden if its filter's name means another filter now. */
function isRetiredWell(group: StoredSeries, projectId: string, { byConditions, taken }: FilterNames): boolean {
  const name = byConditions.get(JSON.stringify([group.source, projectId, group.filterKey]));
  const isNameTaken = taken.has(JSON.stringify([group.source, projectId, group.filter]));
  const isHiddenWell = name === undefined ? group.isHidden || !isNameTaken : !group.isHidden && group.filter === name;
  return group.isRetired && isHiddenWell;
}
