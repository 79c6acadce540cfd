// A database with a given number of days of history, as nightly exports would leave it. It is filled by SQL, in the order in which
// the exports would have stored the rows.

import type { Database } from "../../src/db/connection/database.ts";
import { inTransaction } from "../../src/db/connection/transaction.ts";
import { storePrices } from "../../src/db/money.ts";
import { internGroups } from "../../src/db/usage/rows.ts";
import { type Dimension, USAGE_DIMENSIONS } from "../../src/usage/dimensions.ts";
import { groupOf, UNGROUPED } from "../../src/usage/rows.ts";
import { GROUPINGS } from "../../src/usage/series.ts";
import { runStatement } from "../support/postgres-admin.ts";
import { type Prepared, prepareDatabase } from "./prepared-database.ts";
import { storeSlices } from "./stored-slices.ts";

const PROJECTS = Array.from({ length: 20 }, (_, i) => `project-${i}`);
const WINDOW_DAYS = 7;
/** How billing is grouped. */
const BILLED_GROUPINGS = ["none", "accessor", "deployment", "tags"];
const NIGHTLY = { projects: PROJECTS, schedule: "0 2 * * *", window: { days: WINDOW_DAYS } };
const CONFIG = {
  service: { baseUrl: "http://127.0.0.1:1" },
  projects: PROJECTS.map((id) => ({ id, name: id, key: { env: "KEY" } })),
  exports: [{ ...NIGHTLY, name: "bench", groupings: GROUPINGS }],
  prices: [
    { metric: "hours", model: "*", currency: "USD", price: "0.0077", per: "minute", from: "2020-01-01" },
    { metric: "requests", model: "model-1*", currency: "USD", price: "0.01", per: 1000, from: "2020-01-01" },
  ],
};
/** Groups of each dimension, in each project, on each day. */
export const GROUPS = 100;
/** One row in this many was restated once. */
const RESTATED_EACH = 10;

export const ROWS_A_DAY = PROJECTS.length * (USAGE_DIMENSIONS.length * GROUPS + 1);
const BILLING_ROWS_A_DAY = PROJECTS.length * ((BILLED_GROUPINGS.length - 1) * GROUPS + 1);

export type GrownDatabase = Prepared & { readonly rows: number };

/** The history ends yesterday. `isBilled`: billing is read as well, and has rows of its own. */
export async function growDatabase(databaseUrl: string, days: number, isBilled = false): Promise<GrownDatabase> {
  const billing = { ...NIGHTLY, name: "bills", source: "billing", groupings: BILLED_GROUPINGS };
  const config = isBilled ? { ...CONFIG, exports: [...CONFIG.exports, billing] } : CONFIG;
  const prepared = await prepareDatabase(databaseUrl, config);
  await storePrices(prepared.db, prepared.config.prices, "the benchmark");
  const groups = USAGE_DIMENSIONS.flatMap((grouping) =>
    Array.from({ length: GROUPS }, (_, i) => ({ grouping, group: groupAt(grouping, i) })),
  );
  await inTransaction(prepared.db, (tx) => internGroups(tx, [...groups, { grouping: "none", group: UNGROUPED }]));
  if (days > 0) await fill(prepared.db, databaseUrl, days);
  return { ...prepared, rows: days * (ROWS_A_DAY + (isBilled ? BILLING_ROWS_A_DAY : 0)) };
}

export function groupAt(dimension: Dimension, i: number): ReturnType<typeof groupOf> {
  return groupOf(dimension, `${dimension}-${i}-3f2504e0`, 0);
}

/** Uses a connection of its own, because the program's connections limit how long a statement may take. */
async function fill(db: Database, databaseUrl: string, days: number): Promise<void> {
  await storeSlices(db, { days, rows: GROUPS });
  await runStatement(databaseUrl, fillRows(days));
  // The server would do this by itself after a while.
  await runStatement(databaseUrl, "vacuum analyze");
  await runStatement(databaseUrl, "checkpoint");
}

/** Each row is stored at 2 o'clock on the day after its usage. Restated rows change two days later. */
function fillRows(days: number): string {
  const metrics = "hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters, requests";
  return `
    set work_mem = '256MB';
    insert into usage_export.snapshot_row
      (series_id, usage_date, group_id, ${metrics}, revision, restates, first_seen_at, last_changed_at)
    select s.series_id, current_date - back, g.group_id,
      g.group_id + 0.7242069444, g.group_id + 0.7395791667, 0, 0, 0, 9158866 + g.group_id, 373381 + g.group_id,
      case when g.group_id % ${RESTATED_EACH} = 0 then 2 else 1 end, g.group_id % ${RESTATED_EACH} = 0,
      current_date - back + interval '26 hours',
      current_date - back + case when g.group_id % ${RESTATED_EACH} = 0 then interval '74 hours' else interval '26 hours' end
    from generate_series(1, ${days}) as back
    cross join usage_export.series s
    join usage_export.group_value g using ("grouping")
    where s.source = 'usage'
    order by back desc, s.series_id, g.group_id;

    insert into usage_export.snapshot_row
      (series_id, usage_date, group_id, dollars, revision, restates, first_seen_at, last_changed_at)
    select s.series_id, current_date - back, g.group_id, g.group_id + 0.0123456789, 1, false,
      current_date - back + interval '26 hours', current_date - back + interval '26 hours'
    from generate_series(1, ${days}) as back
    cross join usage_export.series s
    join usage_export.group_value g using ("grouping")
    where s.source = 'billing'
    order by back desc, s.series_id, g.group_id;

    insert into usage_export.superseded_row
      (series_id, usage_date, group_id, ${metrics}, gone, revision, restates, returned, first_seen_at, last_changed_at,
        superseded_at)
    select series_id, usage_date, group_id, hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters,
      requests - 1, false, 1, false, false, first_seen_at, first_seen_at, last_changed_at
    from usage_export.snapshot_row where revision > 1
    order by last_changed_at, series_id, group_id;
  `;
}
