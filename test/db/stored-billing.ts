// Makes slices of answers of the billing breakdown. Reads usage_export.visible_cost, from which the views of cost take their amounts.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import { ExactNumber } from "../../src/decimal.ts";
import type { Day } from "../../src/usage/days.ts";
import { type NormalisedSlice, normalise } from "../../src/usage/normalise.ts";
import type { Grouping } from "../../src/usage/series.ts";
import { sampleRequest, sampleRow } from "../usage/sample-request.ts";
import type { ViewRow } from "./stored-usage.ts";

/** An amount as the service writes it, or null, and the values of the dimensions. */
export type BilledRow = readonly [dollars: string | null, dimensions?: Readonly<Record<string, unknown>>];

/** The slice that the program makes of an answer with these rows for the day. */
export function billed(day: Day, grouping: Grouping, rows: readonly BilledRow[]): NormalisedSlice {
  const results = rows.map(([dollars, dimensions]) =>
    sampleRow(day, dimensions, { dollars: dollars === null ? null : new ExactNumber(dollars) }),
  );
  const request = sampleRequest(grouping, { start: day, end: day }, "billing");
  const [slice] = normalise(request, answerOf(day, results), day).slices;
  if (!slice) throw new Error("the answer has no slice");
  return slice;
}

function answerOf(day: Day, results: readonly unknown[]): unknown {
  return { start: day, end: day, resolution: { units: "day", amount: 1 }, results };
}

/** The stored amounts with their days and dimension values. The amounts are text without superfluous zeros. */
export async function visibleCost(db: Database): Promise<readonly ViewRow[]> {
  const { rows } = await sql<ViewRow>`
    select usage_date, "grouping", accessor, deployment, line_item, tags, trim_scale(dollars)::text as dollars
    from usage_export.visible_cost
    order by usage_date, "grouping", accessor collate "C", deployment collate "C", line_item collate "C", tags collate "C"
  `.execute(db);
  return rows;
}
