// A program: stores the SDK's answers with Drizzle, by the upsert that its guide shows (insert, onConflictDoUpdate with excluded).

import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { date, numeric, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { CREATE_TABLE, exportAll, settings } from "./sdk.ts";

const amount = (name: string) => numeric(name, { mode: "number" });
const usageRow = pgTable(
  "usage_row",
  {
    project_id: text().notNull(),
    usage_date: date().notNull(),
    dimension: text().notNull(),
    group_value: text().notNull(),
    hours: amount("hours"),
    total_hours: amount("total_hours"),
    agent_hours: amount("agent_hours"),
    tokens_in: amount("tokens_in"),
    tokens_out: amount("tokens_out"),
    tts_characters: amount("tts_characters"),
    requests: amount("requests"),
  },
  (table) => [primaryKey({ columns: [table.project_id, table.usage_date, table.dimension, table.group_value] })],
);
const METRICS = [
  "hours",
  "total_hours",
  "agent_hours",
  "tokens_in",
  "tokens_out",
  "tts_characters",
  "requests",
] as const;

const db = drizzle(settings().database);
await db.execute(CREATE_TABLE);
await exportAll((rows) =>
  db
    .insert(usageRow)
    .values([...rows])
    .onConflictDoUpdate({
      target: [usageRow.project_id, usageRow.usage_date, usageRow.dimension, usageRow.group_value],
      set: Object.fromEntries(METRICS.map((name) => [name, sql.raw(`excluded.${name}`)])),
    }),
);
await db.$client.end();
