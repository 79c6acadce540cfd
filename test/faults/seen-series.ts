// Reads the series of a project from the views.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { plainDecimal, readTree } from "./json-tree.ts";
import type { StoredRow } from "./verdict-rows.ts";

/** The rows and the status of a series, by day. */
export type SeenSeries = {
  readonly rows: Map<string, StoredRow[]>;
  readonly status: Map<string, string>;
};

/** Written without an exponent, an amount can have more digits than the service may send. */
const STORED_LENGTH_MAX = 2_000;

type Numbers = readonly (string | null)[];

/** By grouping and filter, as "model/c17". */
export async function seenSeries(db: Database, project: string): Promise<ReadonlyMap<string, SeenSeries>> {
  const series = new Map<string, SeenSeries>();
  const at = (place: string): SeenSeries => {
    const one = series.get(place) ?? { rows: new Map(), status: new Map() };
    series.set(place, one);
    return one;
  };

  const { rows } = await sql<{
    place: string;
    day: string;
    group: string | null;
    numbers: Numbers;
    extra: string | null;
  }>`
    select "grouping" || '/' || filter as place, usage_date::text as day, group_value as "group", extra_metrics::text as extra,
      array[hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters, requests]::text[] as numbers
    from bi.usage_filtered where project_id = ${project}
  `.execute(db);
  for (const { place, day, group, numbers, extra } of rows) {
    const row = {
      group,
      numbers: numbers.map((text) => text && (plainDecimal(text, STORED_LENGTH_MAX) ?? text)),
      extra: extraOf(extra),
    };
    const { rows: byDay } = at(place);
    const ofDay = byDay.get(day);
    if (ofDay) ofDay.push(row);
    else byDay.set(day, [row]);
  }

  const { rows: coverage } = await sql<{ place: string; day: string; status: string }>`
    select "grouping" || '/' || filter as place, usage_date::text as day, status from bi.coverage where project = ${project}
  `.execute(db);
  for (const { place, day, status } of coverage) at(place).status.set(day, status);
  return series;
}

/** The numbers without a column of their own, as sorted pairs of name and number. */
function extraOf(text: string | null): string {
  const tree = readTree(text ?? "{}");
  const members = tree?.kind === "object" ? tree.members : [];
  const pairs = members.map(([name, value]) => [
    name,
    value.kind === "number" ? plainDecimal(value.digits, STORED_LENGTH_MAX) : value.kind,
  ]);
  return JSON.stringify(pairs.toSorted());
}
