// Reads the same numbers from two sources, for a test to compare: from the service's answers, with every digit as it was sent, and
// from the views that BI tools read.

import { sql } from "kysely";
import { z } from "zod";
import type { Database } from "../../src/db/connection/database.ts";
import { addDays, dayOf } from "../../src/emulator/days.ts";
import type { Emulator } from "../support/emulator.ts";
import { PROJECT_ID } from "./program-context.ts";

export const ALL_GROUPINGS = ["none", "accessor", "deployment", "endpoint", "feature_set", "method", "model", "tags"];
const METRICS = ["hours", "total_hours", "agent_hours", "tokens_in", "tokens_out", "tts_characters", "requests"];

/** The series to read: every grouping under every filter. `filters` has the query parameters of each filter's conditions, by name. */
export type Reading = {
  readonly groupings: readonly string[];
  readonly filters?: Readonly<Record<string, string>>;
  readonly window: { readonly start: string; readonly end: string };
};

type Row = Readonly<Record<string, string | null>>;
type Numbers = Readonly<Record<string, readonly Row[]>>;

/** The last `count` complete days. */
export function lastDays(count: number): { readonly start: string; readonly end: string } {
  const today = dayOf(new Date());
  return { start: addDays(today, -count), end: addDays(today, -1) };
}

const Answer = z.object({ results: z.array(z.record(z.string(), z.unknown())) });
const Place = z.looseObject({ start: z.string(), end: z.string() });

export async function servedNumbers(emulator: Emulator, key: string, reading: Reading): Promise<Numbers> {
  return eachSeries(reading, async (grouping, _, conditions) => {
    const query = new URLSearchParams({ ...reading.window, ...Object.fromEntries(new URLSearchParams(conditions)) });
    if (grouping !== "none") query.set("grouping", grouping);
    const response = await fetch(`${emulator.url}/v1/projects/${PROJECT_ID}/usage/breakdown?${query}`, {
      headers: { authorization: `Token ${key}` },
    });
    const { results } = Answer.parse(JSON.parse(await response.text(), asSent));
    return results.map((row) => {
      const place = Place.parse(row.grouping ?? row);
      const group = grouping === "none" ? null : shown(grouping, place[grouping]);
      return {
        usage_date: place.start,
        group,
        ...Object.fromEntries(METRICS.map((metric) => [metric, textOf(row[metric])])),
      };
    });
  });
}

export async function storedNumbers(db: Database, reading: Reading): Promise<Numbers> {
  const numbers = sql.join(METRICS.map((metric) => sql`${sql.ref(metric)}::text`));
  return eachSeries(reading, async (grouping, filter, conditions) => {
    const source =
      conditions !== ""
        ? sql`select *, group_value as "group" from bi.usage_filtered where filter = ${filter} and "grouping" = ${grouping}`
        : grouping === "none"
          ? sql`select *, null as "group" from bi.usage_total`
          : sql`select *, ${sql.ref(grouping)} as "group" from ${sql.table(`bi.usage_by_${grouping}`)}`;
    const { rows } = await sql<Row>`
      select usage_date::text, "group", ${numbers} from (${source}) source where project_id = ${PROJECT_ID}
    `.execute(db);
    return rows;
  });
}

async function eachSeries(
  { groupings, filters = { all: "" } }: Reading,
  read: (grouping: string, filter: string, conditions: string) => Promise<readonly Row[]>,
): Promise<Numbers> {
  const numbers: Record<string, readonly Row[]> = {};
  for (const [filter, conditions] of Object.entries(filters)) {
    for (const grouping of groupings) {
      const rows = await read(grouping, filter, conditions);
      numbers[`${grouping} / ${filter}`] = rows.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
    }
  }
  return numbers;
}

function sortKey({ usage_date, group }: Row): string {
  return JSON.stringify([usage_date, group]);
}

/** A reviver that keeps a number as the text that was sent. */
function asSent(_: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" ? context?.source : value;
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** The text by which the views show a value of a dimension. */
function shown(grouping: string, value: unknown): string | null {
  if (value === null || value === undefined) return null;
  const values = Array.isArray(value) ? value.toSorted() : [value];
  if (grouping === "tags" || values.length > 1) return JSON.stringify(values);
  return values.length === 0 ? null : String(values[0]);
}
