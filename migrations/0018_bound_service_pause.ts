// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    alter table usage_export.service_pace
      -- How long the pause is that ends at held_until. While the clock goes on as it should, no more is left of it than this.
      add column held_for interval not null default '0'
  `.execute(db);
  // What a version before this one stored may be years away.
  await sql`
    update usage_export.service_pace
    set held_until = least(held_until, clock_timestamp() + interval '1 hour'),
      held_for = least(held_until - clock_timestamp(), interval '1 hour')
    where held_until > clock_timestamp()
  `.execute(db);
}
