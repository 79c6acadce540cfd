// The query that dumps a view: which rows, in which order, and each value as exact text.

import { type RawBuilder, sql } from "kysely";
import type { Column, View } from "../dump/view.ts";
import type { Day } from "../usage/day.ts";

/** Both are included. */
export type DayRange = { readonly from?: Day | undefined; readonly to?: Day | undefined };

type Expression = RawBuilder<unknown>;

/** Of the first of these columns that a view has. A row belongs to a range when it has a day of it. */
const DAYS: readonly { readonly columns: readonly string[]; readonly first: Expression; readonly last: Expression }[] =
  [
    { columns: ["usage_date"], first: sql`v.usage_date`, last: sql`v.usage_date` },
    { columns: ["x_UsageDate"], first: sql`v."x_UsageDate"`, last: sql`v."x_UsageDate"` },
    { columns: ["from_date", "to_date"], first: sql`v.from_date`, last: sql`v.to_date` },
    {
      columns: ["taken_at"],
      first: sql`(v.taken_at at time zone 'UTC')::date`,
      last: sql`(v.taken_at at time zone 'UTC')::date`,
    },
    {
      columns: ["started_at"],
      first: sql`(v.started_at at time zone 'UTC')::date`,
      last: sql`(v.started_at at time zone 'UTC')::date`,
    },
  ];

const PROJECTS: readonly string[] = ["project_id", "SubAccountId"];

/** Whether its rows can be told apart by their day. */
export function hasDay(view: View): boolean {
  return daysOf(view) !== undefined;
}

/**
 * By project, day, the texts in the order of the columns, then the rest: the same rows come in the same order anywhere,
 * whatever language the database sorts in.
 */
export function dumpQuery(view: View, { from, to }: DayRange): RawBuilder<Record<string, string | null>> {
  const days = daysOf(view);
  const conditions = [
    sql`true`,
    ...(days && from !== undefined ? [sql`${days.last} >= ${from}::date`] : []),
    ...(days && to !== undefined ? [sql`${days.first} <= ${to}::date`] : []),
  ];
  const texts = view.columns.filter(({ kind }) => kind === "text");
  const projects = texts.filter(({ name }) => PROJECTS.includes(name));
  const rest = view.columns.filter(({ kind }) => kind !== "text");
  const order = [...projects.map(sorted), ...(days ? [days.first] : []), ...texts.map(sorted), ...rest.map(sorted)];
  return sql`
    select ${sql.join(view.columns.map((column) => sql`${textOf(column)} as ${sql.id(column.name)}`))}
    from ${sql.id("bi", view.name)} v
    where ${sql.join(conditions, sql` and `)}
    order by ${sql.join(order)}
  `;
}

function daysOf({ columns }: View) {
  const names = new Set(columns.map(({ name }) => name));
  return DAYS.find((days) => days.columns.every((name) => names.has(name)));
}

function sorted(column: Column): Expression {
  return column.kind === "text" ? sql`${refOf(column)}::text collate pg_catalog."C"` : refOf(column);
}

function textOf(column: Column): Expression {
  const value = refOf(column);
  switch (column.kind) {
    case "day":
      return sql`to_char(${value}, 'YYYY-MM-DD')`;
    case "instant":
      return sql`to_char(${value} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
    case "json":
      return sql`to_json(${value})::text`;
    default:
      return sql`${value}::text`;
  }
}

function refOf({ name }: Column): Expression {
  return sql.ref(`v.${name}`);
}
