// Stores the configured prices and budgets, and reads how much of the budgets is used.

import { type RawBuilder, sql } from "kysely";
import { type Budget, type Price, priceFilterKey, unitFactor, withEnds } from "../config/money.ts";
import type { BudgetUse } from "../usage/budgets.ts";
import type { Window } from "../usage/days.ts";
import type { Database } from "./connection/database.ts";
import { storeConfigured, type Tx } from "./connection/transaction.ts";

/** Returns whether any price has changed. */
export async function storePrices(db: Database, prices: readonly Price[]): Promise<boolean> {
  // A price of null is not stored: its only effect is that `withEnds` ends the price before it.
  const book = withEnds(prices).filter(({ price }) => price !== null);
  return storeConfigured(db, "prices", JSON.stringify(book), async (tx) => {
    await sql`delete from usage_export.price_tier`.execute(tx);
    await sql`delete from usage_export.price`.execute(tx);
    for (const price of book) await insertPrice(tx, price);
  });
}

async function insertPrice(tx: Tx, price: Price): Promise<void> {
  const tiers = [{ above: "0", price: price.price }, ...price.tiers];
  await sql`
    with new as (
      insert into usage_export.price (metric, model, filter_key, currency, per, valid_from, valid_until)
      values (
        ${price.metric}, ${price.model}, ${priceFilterKey(price)}, ${price.currency}, ${price.per},
        ${price.from}::date, ${price.until ?? null}::date
      )
      returning price_id
    )
    insert into usage_export.price_tier (price_id, above, below, price, unit_price)
    select price_id, above, lead(above) over (order by above), price, price * ${unitFactor(price.per)}::numeric
    from new
    cross join unnest(${tiers.map(({ above }) => above)}::numeric[], ${tiers.map(({ price }) => price)}::numeric[]) as t (above, price)
  `.execute(tx);
}

/** Without `from`, a new budget begins with the current period, and a stored one keeps its first day unless its `period` changes. */
export async function storeBudgets(db: Database, budgets: readonly Budget[]): Promise<boolean> {
  return storeConfigured(db, "budgets", JSON.stringify(budgets), async (tx) => {
    const names = budgets.map(({ name }) => name);
    await sql`delete from usage_export.budget where name <> all(${names}::text[])`.execute(tx);
    for (const budget of budgets) await writeBudget(tx, budget);
  });
}

const BUDGET_COLUMNS = "project_ids project scope scope_value metric currency period amount thresholds".split(" ");

async function writeBudget(tx: Tx, budget: Budget): Promise<void> {
  const { name, project, scope, scopeValue, metric, currency, period, amount, thresholds, from } = budget;
  const firstDay = sql`date_trunc(${period}, coalesce(${from ?? null}::date, (now() at time zone 'UTC')::date)::timestamp)::date`;
  const budgetColumns = (prefix: string) => sql.join(BUDGET_COLUMNS.map((column) => sql.ref(`${prefix}${column}`)));
  await sql`
    insert into usage_export.budget as b (name, valid_from, ${budgetColumns("")})
    values (
      ${name}, ${firstDay}, ${budget.projects.map(({ id }) => id).sort()}::text[], ${project ?? null}, ${scope}, ${scopeValue ?? null},
      ${metric}, ${currency ?? null}, ${period}, ${amount}::numeric, ${thresholds}::numeric[]
    )
    on conflict (name) do update
    set (${budgetColumns("")}) = row(${budgetColumns("excluded.")}),
      valid_from = case when ${from === undefined}::boolean and b.period = excluded.period then b.valid_from else excluded.valid_from end,
      recorded_at = case when (${budgetColumns("b.")}) is distinct from (${budgetColumns("excluded.")}) then now() else b.recorded_at end
  `.execute(tx);
}

/** How long a period is watched after its end, and after each reading of one of its days. Notifications are only about watched periods. */
const WATCHED_DAYS = 3;
/** A period that ended longer ago is never watched: the records of its notifications may be gone, so they could be sent again. */
export const WATCHED_DAYS_MAX = 365;

const lastRead = new WeakMap<Database, { readonly version: string; readonly budgets: readonly BudgetUse[] }>();

/** Reads anew only if `budgetsVersion` has changed: reading may take a second, and every scrape, tick and page asks. `tx` belongs to `db`. */
export async function watchedBudgets(db: Database, tx: Tx): Promise<readonly BudgetUse[]> {
  const version = await budgetsVersion(tx);
  if (version === null) return [];
  const known = lastRead.get(db);
  if (known?.version === version) return known.budgets;
  const budgets = await readPeriods(tx, isWatched);
  lastRead.set(db, { version, budgets });
  return budgets;
}

/**
 * A text that changes with budgets, prices, series, the number of keys, and stored answers: each answer raises the `fetch_no` of a slice.
 * It also changes every ten minutes, because some figures depend on the time of day. Null if there is no budget.
 */
async function budgetsVersion(tx: Tx): Promise<string | null> {
  const { rows } = await sql<{ version: string | null }>`
    select case when exists (select from usage_export.budget) then json_build_array(
      floor(extract(epoch from now()) / 600),
      (select json_agg(c order by what) from usage_export.configured c),
      (select count(*) from usage_export.api_key),
      (select json_agg(json_build_array(series_id, window_days, superseded_at, retired_at) order by series_id) from usage_export.series),
      (select json_build_array(count(*), sum(fetch_no), max(fetched_at), count(*) filter (where status = 'complete')) from usage_export.slice)
    )::text end as version
  `.execute(tx);
  return rows[0]?.version ?? null;
}

const watchedFrom = sql`(now() - make_interval(days => ${WATCHED_DAYS}))`;
/**
 * The current periods, earlier ones whose days are still read again, and those with a day that was read lately. The conditions in the last
 * brackets make Postgres compute the use of a period, which is slow. The cheap ones before them leave most periods out.
 */
const isWatched = sql`
  p.period_end >= (now() at time zone 'UTC')::date - ${WATCHED_DAYS_MAX}::integer and (
    p.period_end >= (${watchedFrom} at time zone 'UTC')::date - (select coalesce(max(window_days), 0) from usage_export.series)
    or exists (
      select from usage_export.series s join usage_export.slice sl using (series_id)
      where s.project_id = any(p.project_ids) and sl.usage_date between p.period_start and p.period_end and sl.fetched_at > ${watchedFrom}
    )
  ) and (
    not p.is_settled or p.last_read_at > ${watchedFrom} or (p.period_end + 1)::timestamp at time zone 'UTC' > ${watchedFrom}
  )
`;

/** The use of the budgets in each period that has a day in the window. */
export async function budgetsIn(tx: Tx, { start, end }: Window): Promise<readonly BudgetUse[]> {
  return readPeriods(tx, sql`p.period_start <= ${end}::date and p.period_end >= ${start}::date`);
}

async function readPeriods(tx: Tx, isWanted: RawBuilder<unknown>): Promise<readonly BudgetUse[]> {
  const { rows } = await sql<BudgetUse>`
    select ${budgetUseColumns} from usage_export.budget_period p where ${isWanted} order by p.name collate "C", p.period_start
  `.execute(tx);
  return rows;
}

const groupsOfScope = sql`
  select from usage_export.group_value g
  where g."grouping" = case p.scope when 'key' then 'accessor' when 'tag' then 'tags' when 'model' then 'model' end
`;
/** Usage was read by the scope's dimension, but no group is `scope_value`, which may name a key's rotation. Several tags are a JSON array. */
const isNeverSeen = sql`(
  exists (${groupsOfScope}) and not exists (
    ${groupsOfScope} and (
      g.display = p.scope_value or strpos(g.display, to_json(p.scope_value)::text) > 0
      or exists (select from usage_export.api_key k where p.scope = 'key' and k.rotation = p.scope_value and k.api_key_id = g.display)
    )
  )
)`;

const budgetUseColumns = sql`
  p.name, p.project_ids as "projectIds", p.scope, p.scope_value as "scopeValue", p.metric, p.currency, p.cost_source as "costSource", p.period, p.period_start as start, p.period_end as "end",
  trim_scale(p.amount)::text as amount, trim_scale(p.used)::text as used, trim_scale(trunc(p.used * 100 / p.amount, 2))::text as percent,
  trim_scale(p.forecast)::text as forecast, trim_scale(p.forecast_low)::text as "forecastLow", trim_scale(p.forecast_high)::text as "forecastHigh",
  trim_scale(trunc(p.forecast * 100 / p.amount, 2))::text as "forecastPercent",
  p.thresholds::text[] as thresholds, p.reached::text[] as reached,
  p.days_missing as "daysMissing", p.days_not_final as "daysNotFinal", p.has_unpriced as "hasUnpriced", p.is_final as "isFinal",
  coalesce(p.used, 0) = 0 and ${isNeverSeen} as "isNeverSeen",
  p.period_end < (now() at time zone 'UTC')::date as "isOver",
  exists (
    select from usage_export.budget b where b.name = p.name and p.period_end < (b.recorded_at at time zone 'UTC')::date
  ) as "isBeforeStored"
`;
