// Stores the versions of the price book.

import { sql } from "kysely";
import {
  type BookChange,
  changeBook,
  type Price,
  priceFilterKey,
  type StoredPrice,
  unitFactor,
} from "../usage/prices.ts";
import type { Database } from "./connection/database.ts";
import { inTransaction, type Tx } from "./connection/transaction.ts";

/**
 * Puts the configured prices in force, and returns what was changed: nothing if they already are. No version is ever deleted. `by` is
 * recorded with new versions.
 */
export async function storePrices(db: Database, prices: readonly Price[], by: string): Promise<BookChange> {
  if (prices.length === 0) return { replaced: [], added: [] };
  const readChange = async (db: Database) => changeBook(await pricesInForce(db), prices);
  // Nearly always nothing has changed since the last start. Then no process waits for another.
  const { replaced, added } = await readChange(db);
  if (replaced.length + added.length === 0) return { replaced, added };
  return inTransaction(db, async (tx) => {
    // Two processes that start at once would both insert the same prices.
    await sql`lock table usage_export.price in share row exclusive mode`.execute(tx);
    const change = await readChange(tx);
    await sql`
      update usage_export.price set replaced_at = now() where price_id = any(${change.replaced}::integer[])
    `.execute(tx);
    for (const price of change.added) await insertPrice(tx, price, by);
    return change;
  });
}

type PriceRow = Omit<StoredPrice, "conditions"> & { readonly filterKey: string };

async function pricesInForce(db: Database): Promise<readonly StoredPrice[]> {
  // JSON with text in place of numbers, so that no number becomes a double.
  const { rows } = await sql<{ price: PriceRow }>`
    select json_strip_nulls(json_build_object(
      'id', price_id, 'metric', metric, 'model', model, 'filterKey', filter_key, 'currency', currency, 'digits', digits, 'per', per,
      'minimum', minimum::text, 'volume', volume, 'from', valid_from, 'until', valid_until,
      'price', (select price::text from usage_export.price_tier t where t.price_id = p.price_id and above = 0),
      'tiers', (
        select coalesce(json_agg(json_build_object('above', above::text, 'price', price::text) order by above), '[]')
        from usage_export.price_tier t where t.price_id = p.price_id and above > 0
      )
    )) as price
    from usage_export.price p where replaced_at is null order by price_id
  `.execute(db);
  return rows.map(({ price: { filterKey, ...price } }) => ({
    ...price,
    conditions: JSON.parse(filterKey).dimensions ?? {},
  }));
}

async function insertPrice(tx: Tx, price: Price, by: string): Promise<void> {
  const tiers = [{ above: "0", price: price.price }, ...price.tiers];
  await sql`
    with version as (
      insert into usage_export.price
        (metric, model, filter_key, currency, digits, per, minimum, volume, valid_from, valid_until, recorded_by)
      values (
        ${price.metric}, ${price.model}, ${priceFilterKey(price)}, ${price.currency}, ${price.digits}, ${price.per},
        ${price.minimum ?? null}::numeric, ${price.volume}, ${price.from}::date, ${price.until ?? null}::date, ${by}
      )
      returning price_id
    )
    insert into usage_export.price_tier (price_id, above, below, price, unit_price)
    select price_id, above, lead(above) over (order by above), price, price * ${unitFactor(price.per)}::numeric
    from version
    cross join unnest(${tiers.map(({ above }) => above)}::numeric[], ${tiers.map(({ price }) => price)}::numeric[]) as t (above, price)
  `.execute(tx);
}
