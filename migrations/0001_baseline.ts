// Creates the tables. A migration imports nothing from src, because the program may change and the migration may not.

import fs from "node:fs";
import path from "node:path";
import { type Kysely, sql } from "kysely";

const TABLES_FOLDER = path.join(import.meta.dirname, "tables");

/** In this order, because tables refer to each other. */
const FILES = ["usage", "runs", "service", "keys", "money", "changes", "bi-schema"];

/** `fillPlaceholders` writes the columns of the metrics that the program knows into the text. */
export async function up(db: Kysely<unknown>, fillPlaceholders: (text: string) => string): Promise<void> {
  for (const file of FILES) {
    const statements = fs.readFileSync(path.join(TABLES_FOLDER, `${file}.sql`), "utf8");
    await sql.raw(fillPlaceholders(statements)).execute(db);
  }
}
