// Frozen once released: a migration imports nothing from src, and is corrected by a later migration.

import { type Kysely, sql } from "kysely";

export async function up(db: Kysely<unknown>): Promise<void> {
  // A row is a version of a price. The versions in force, those without replaced_at, never price the same usage of a day twice.
  await sql`
    create table usage_export.price (
      price_id    integer     generated always as identity primary key,
      metric      text        not null check (metric in
        ('hours', 'total_hours', 'agent_hours', 'tokens_in', 'tokens_out', 'tts_characters', 'requests')),
      -- A name, the beginning of names followed by *, * alone for any usage, or the sorted JSON array of a set of models.
      model       text        not null,
      -- The conditions of the series that is priced, which is grouped by model.
      filter_key  text        not null,
      currency    text        not null,
      -- How many decimals amounts in the currency are rounded to.
      digits      integer     not null check (digits >= 0),
      -- A power of ten, or hour, minute or second.
      per         text        not null,
      -- The least amount of a calendar month.
      minimum     numeric     check (minimum >= 0 and minimum < 'infinity'),
      -- Whose quantities decide together on tier and minimum.
      volume      text        not null check (volume in ('account', 'project')),
      valid_from  date        not null,
      -- The last day; null without an end.
      valid_until date        check (valid_until >= valid_from),
      recorded_at timestamptz not null default now(),
      recorded_by text        not null,
      -- Null while it is in force.
      replaced_at timestamptz
    )
  `.execute(db);
  await sql`
    create table usage_export.price_tier (
      price_id   integer not null references usage_export.price,
      -- The quantity of the month after which the tier begins, and with which it ends; null for the last tier.
      above      numeric not null check (above >= 0 and above < 'infinity'),
      below      numeric check (below > above and below < 'infinity'),
      -- As configured, for "per" units.
      price      numeric not null check (price >= 0 and price < 'infinity'),
      -- Exactly the same for one unit of the metric.
      unit_price numeric not null check (unit_price >= 0 and unit_price < 'infinity'),
      primary key (price_id, above)
    )
  `.execute(db);
}
