// Reads the same numbers from the service's answers, with every digit as sent, and from the views, so that tests compare them.

import { type RawBuilder, sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { addDays, dayOf } from "../../src/emulator/days.ts";
import { USAGE_DIMENSIONS } from "../../src/usage/dimensions.ts";
import type { Emulator } from "../support/emulator.ts";
import { PROJECT_ID } from "./small-config.ts";

export const ALL_GROUPINGS = ["none", ...USAGE_DIMENSIONS];
const METRICS = ["hours", "total_hours", "agent_hours", "tokens_in", "tokens_out", "tts_characters", "requests"];

/** The series to read: every grouping under every filter. `filters` has the query parameters of each filter's conditions, by name. */
export type Reading = {
  readonly groupings: readonly string[];
  readonly filters?: Readonly<Record<string, string>>;
  readonly window: { readonly start: string; readonly end: string };
};

/** Numbers are texts exactly as they were sent, and values of dimensions are texts as the views show them. */
type Row = Readonly<Record<string, string | null>>;
type Numbers = Readonly<Record<string, readonly Row[]>>;
type Values = Readonly<Record<string, string | readonly string[] | null | undefined>>;
type SentRow = Values & { readonly grouping?: Values };

/** The last `count` complete days. */
export function lastDays(count: number): { readonly start: string; readonly end: string } {
  const today = dayOf(new Date());
  return { start: addDays(today, -count), end: addDays(today, -1) };
}

/** The service's answer, with every number replaced by the text that was sent. */
export async function ask<T>({ url }: Emulator, key: string, path: string): Promise<T> {
  const headers = { authorization: `Token ${key}` };
  const response = await fetch(`${url}/v1/projects/${PROJECT_ID}/${path}`, { headers });
  if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
  const asSent = (_: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" ? context?.source : value;
  return JSON.parse(await response.text(), asSent);
}

/** The rows of a breakdown. `groups` has the values of the dimensions that it is grouped by. */
async function askRows(
  emulator: Emulator,
  key: string,
  source: "usage" | "billing",
  dimensions: readonly string[],
  query: string,
): Promise<readonly { readonly sent: Values; readonly day: string; readonly groups: Row }[]> {
  const path = [`${source}/breakdown?${query}`, ...dimensions.map((name) => `grouping=${name}`)].join("&");
  const { results } = await ask<{ results: readonly SentRow[] }>(emulator, key, path);
  return results.map((sent) => {
    const group = sent.grouping ?? sent;
    const groups = Object.fromEntries(dimensions.map((name) => [name, shown(name, group[name])]));
    return { sent, day: String(group.start), groups };
  });
}

/** A value of a dimension as the views show it. */
function shown(dimension: string, value: Values[string]): string | null {
  if (value == null) return null;
  const values = [value].flat().toSorted();
  if (dimension === "tags" || values.length > 1) return JSON.stringify(values);
  return values[0] ?? null;
}

const inOrder = (rows: readonly Row[]) => rows.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
const sortKey = (row: Row) => JSON.stringify(Object.entries(row).sort());
const dimensionsOf = (grouping: string) => (grouping === "none" ? [] : grouping.split(","));
const windowQuery = ({ start, end }: Reading["window"]) => `start=${start}&end=${end}`;
const textOf = (value: Values[string]) => (typeof value === "string" ? value : null);

export async function servedNumbers(emulator: Emulator, key: string, reading: Reading): Promise<Numbers> {
  return eachSeries(reading, async (grouping, _, conditions) => {
    const query = `${windowQuery(reading.window)}&${conditions}`;
    const rows = await askRows(emulator, key, "usage", dimensionsOf(grouping), query);
    return rows.map(({ sent, day, groups }) => ({
      ...{ usage_date: day, group: groups[grouping] ?? null },
      ...Object.fromEntries(METRICS.map((metric) => [metric, textOf(sent[metric])])),
    }));
  });
}

export async function storedNumbers(db: Database, reading: Reading): Promise<Numbers> {
  const numbers = sql.join(METRICS.map((metric) => sql`${sql.ref(metric)}::text`));
  return eachSeries(reading, async (grouping, filter, conditions) => {
    const isTotal = grouping === "none";
    const [group, view] = isTotal ? [sql`null`, "usage_total"] : [sql.ref(grouping), `usage_by_${grouping}`];
    const all = sql`select *, ${group} as "group" from ${sql.table(`bi.${view}`)}`;
    const filtered = sql`select *, group_value as "group" from bi.usage_filtered where filter = ${filter} and "grouping" = ${grouping}`;
    const { rows } = await sql<Row>`
      select usage_date::text, "group", ${numbers} from (${conditions === "" ? all : filtered}) source where project_id = ${PROJECT_ID}
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
      numbers[`${grouping} / ${filter}`] = inOrder(await read(grouping, filter, conditions));
    }
  }
  return numbers;
}

/** The amounts of a grouping of billing. `conditions` are the query parameters of a filter. */
export async function servedBills(
  emulator: Emulator,
  key: string,
  grouping: string,
  window: Reading["window"],
  conditions = "",
): Promise<readonly Row[]> {
  const query = `${windowQuery(window)}&${conditions}`;
  const rows = await askRows(emulator, key, "billing", dimensionsOf(grouping), query);
  return inOrder(rows.map(({ sent, day, groups }) => ({ day, ...groups, amount: textOf(sent.dollars) })));
}

/** The rows of a view of bi. If the view has several groupings or filters, `where` chooses one. */
export async function storedBills(
  db: Database,
  view: string,
  grouping: string,
  where: RawBuilder<unknown> = sql`true`,
): Promise<readonly Row[]> {
  const dimensions = dimensionsOf(grouping).map((name) => sql`, ${sql.ref(name)}`);
  const { rows } = await sql<Row>`
    select usage_date::text as day, trim_scale(amount)::text as amount ${sql.join(dimensions, sql``)}
    from ${sql.table(`bi.${view}`)} where ${where}
  `.execute(db);
  return inOrder(rows);
}
