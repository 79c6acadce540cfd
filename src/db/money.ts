// Stores the configured prices and budgets, and reads how much of the budgets is used.

import { type RawBuilder, sql } from "kysely";
import {
  type Budget,
  type BudgetChange,
  type BudgetUse,
  budgetKey,
  changeBudgets,
  type LastBudget,
} from "../usage/budgets.ts";
import { addDays, dayOf, type Window } from "../usage/days.ts";
import {
  type BookChange,
  changeBook,
  type Price,
  priceFilterKey,
  type StoredPrice,
  unitFactor,
} from "../usage/prices.ts";
import { type Database, databaseNow } from "./connection/database.ts";
import { isStatementTimeout } from "./connection/errors.ts";
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

/** Puts the configured budgets in force, and returns what was changed: nothing if they already are. */
export async function storeBudgets(
  db: Database,
  budgets: readonly Budget[],
  by: string,
): Promise<readonly BudgetChange[]> {
  // Nearly always nothing has changed since the last start. Then no process waits for another.
  if ((await pendingChanges(db, budgets)).length === 0) return [];
  return inTransaction(db, async (tx) => {
    // Two processes that start at once would both insert the same budgets.
    await sql`lock table usage_export.budget in share row exclusive mode`.execute(tx);
    const changes = await pendingChanges(tx, budgets);
    for (const change of changes) await writeChange(tx, change, by);
    return changes;
  });
}

/** What `storeBudgets` would change. */
export async function pendingChanges(db: Database, budgets: readonly Budget[]): Promise<readonly BudgetChange[]> {
  return changeBudgets(await lastBudgets(db), budgets, dayOf(await databaseNow(db)));
}

type BudgetRow = Omit<Budget, "projects"> & {
  readonly ids: readonly string[];
  readonly isRemoved: boolean;
};

async function lastBudgets(db: Database): Promise<readonly LastBudget[]> {
  // JSON with text in place of numbers, so that no number becomes a double.
  const { rows } = await sql<{ budget: BudgetRow }>`
    select distinct on (name) json_strip_nulls(json_build_object(
      'isRemoved', valid_until is not null, 'name', name, 'project', project, 'ids', project_ids, 'scope', scope, 'scopeValue', scope_value, 'metric', metric,
      'currency', currency, 'amount', amount::text, 'period', period, 'thresholds', thresholds::text[], 'from', from_day
    )) as budget
    from usage_export.budget order by name, valid_from desc
  `.execute(db);
  return rows.map(({ budget: { ids, isRemoved, ...budget } }) => ({
    ...{ name: budget.name, period: budget.period, from: budget.from, isRemoved },
    key: budgetKey({ ...budget, projects: ids.map((id) => ({ id })) }),
  }));
}

async function writeChange(tx: Tx, { name, start, budget }: BudgetChange, by: string): Promise<void> {
  await sql`
    delete from usage_export.budget where name = ${name} and valid_from >= ${start}::date
  `.execute(tx);
  await sql`
    update usage_export.budget set valid_until = ${addDays(start, -1)}::date
    where name = ${name} and (valid_until is null or valid_until >= ${start}::date)
  `.execute(tx);
  if (!budget) return;
  await sql`
    insert into usage_export.budget
      (name, valid_from, from_day, project_ids, project, scope, scope_value, metric, currency, period, amount, thresholds, recorded_by)
    values (
      ${name}, ${start}::date, ${budget.from ?? null}::date, ${budget.projects.map(({ id }) => id)}::text[], ${budget.project ?? null},
      ${budget.scope}, ${budget.scopeValue ?? null}, ${budget.metric}, ${budget.currency ?? null}, ${budget.period},
      ${budget.amount}::numeric, ${budget.thresholds}::numeric[], ${by}
    )
  `.execute(tx);
}

/**
 * How long the alert about a period goes on after the period is over and its days are not read again, counted from their last
 * reading: days that are read long after, as after an outage, are alerted as well.
 */
const WATCHED_DAYS = 3;
/** Nobody is notified of a period that ended longer ago: what was sent of older ones is not kept for ever. */
export const WATCHED_DAYS_MAX = 365;

/** The budgets in the periods that somebody should watch. `tx` is a snapshot of `db`. */
export async function watchedBudgets(db: Database, tx: Tx): Promise<readonly BudgetUse[]> {
  return readChanged(db, tx, "watched", () => readWatched(tx));
}

/** The budgets in the periods with a day of the window. `tx` is a snapshot of `db`. */
export async function budgetsIn(db: Database, tx: Tx, window: Window): Promise<readonly BudgetUse[]> {
  return readChanged(db, tx, `${window.start} ${window.end}`, () => readWindow(tx, window));
}

type Answer = { readonly budgets: readonly BudgetUse[] } | { readonly error: unknown; readonly limitMs: number };

const remembered = new WeakMap<Database, Map<string, { readonly basis: string; readonly answer: Answer }>>();
/** Visitors of the dashboard choose windows: above this the oldest answer is forgotten. */
const REMEMBERED_MAX = 16;

/**
 * Budgets are asked for at every scrape, tick and page, and reading them takes a second where there is much usage. So they are read again
 * only if what they are computed from has changed, or if it took too long before and may take longer now.
 */
async function readChanged(
  db: Database,
  tx: Tx,
  what: string,
  read: () => Promise<readonly BudgetUse[]>,
): Promise<readonly BudgetUse[]> {
  const { basis, limitMs } = await basisOf(tx);
  if (basis === null) return [];
  const answers = remembered.get(db) ?? new Map<string, { readonly basis: string; readonly answer: Answer }>();
  const known = answers.get(what);
  const isKnown = known?.basis === basis && ("budgets" in known.answer || limitMs <= known.answer.limitMs);
  const answer = isKnown ? known.answer : await answerOf(read, limitMs);
  answers.delete(what);
  answers.set(what, { basis, answer });
  const [oldest] = answers.keys();
  if (answers.size > REMEMBERED_MAX && oldest !== undefined) answers.delete(oldest);
  remembered.set(db, answers);
  if ("error" in answer) throw answer.error;
  return answer.budgets;
}

/** Only an error that comes from the time limit is an answer: with the same limit it would come again. */
async function answerOf(read: () => Promise<readonly BudgetUse[]>, limitMs: number): Promise<Answer> {
  try {
    return { budgets: await read() };
  } catch (error) {
    if (isStatementTimeout(error)) return { error, limitMs };
    throw error;
  }
}

/**
 * Changes with every answer that is stored, as it raises the number of a slice's newest fetch, and with the budgets, prices, keys, series
 * and days; and every ten minutes, for what depends on the time of day. Null without a budget. `limitMs` is the time limit of a statement.
 */
async function basisOf(tx: Tx): Promise<{ readonly basis: string | null; readonly limitMs: number }> {
  const { rows } = await sql<{ basis: string | null; limitMs: number }>`
    select case when exists (select from usage_export.budget) then json_build_array(
      floor(extract(epoch from now()) / 600),
      (select json_agg(b order by name, valid_from) from usage_export.budget b),
      (select array[count(*), count(replaced_at)] from usage_export.price),
      (select count(*) from usage_export.api_key),
      (select json_agg(json_build_array(series_id, window_days, superseded_at, retired_at) order by series_id) from usage_export.series),
      (select json_build_array(count(*), sum(fetch_no), max(fetched_at), count(*) filter (where status = 'complete')) from usage_export.slice)
    )::text end as basis,
    coalesce((select nullif(setting, '0')::integer from pg_catalog.pg_settings where name = 'statement_timeout'), 2147483647) as "limitMs"
  `.execute(tx);
  return rows[0] ?? { basis: null, limitMs: 0 };
}

/**
 * The current periods, earlier ones whose days are still read again, and those with a
 * day that was read a short time ago.
 */
async function readWatched(tx: Tx): Promise<readonly BudgetUse[]> {
  const watchedFrom = sql`(now() - make_interval(days => ${WATCHED_DAYS}))`;
  // The first condition needs no day of a period, and leaves most periods out before their days are read.
  const { rows } = await sql<BudgetUse>`
    select ${useColumns}
    from usage_export.budget_period p
    where p.period_end >= (now() at time zone 'UTC')::date - ${WATCHED_DAYS_MAX}::integer and (
      p.period_end >= (${watchedFrom} at time zone 'UTC')::date - (select coalesce(max(window_days), 0) from usage_export.series)
      or exists (
        select from usage_export.series s join usage_export.slice sl using (series_id)
        where s.project_id = any(p.project_ids) and sl.usage_date between p.period_start and p.period_end
          and sl.fetched_at > ${watchedFrom}
      )
    ) and (
      not p.is_settled or p.last_read_at > ${watchedFrom}
      or (p.period_end + 1)::timestamp at time zone 'UTC' > ${watchedFrom}
    )
    order by p.name collate "C", p.period_start
  `.execute(tx);
  return rows;
}

async function readWindow(tx: Tx, { start, end }: Window): Promise<readonly BudgetUse[]> {
  const { rows } = await sql<BudgetUse>`
    select ${useColumns} from usage_export.budget_period p where p.period_start <= ${end}::date and p.period_end >= ${start}::date
    order by p.name collate "C", p.period_start
  `.execute(tx);
  return rows;
}

/**
 * Usage or cost by the dimension was read, but none with the value. A value within a set is searched for in the set's text, which may also
 * find a value that only ends like it: then nothing is said.
 */
function isNeverSeen(scope: RawBuilder<string>, value: RawBuilder<string | null>) {
  const ofScope = sql`
    select from usage_export.group_value g
    where g."grouping" = case ${scope} when 'key' then 'accessor' when 'tag' then 'tags' when 'model' then 'model' end
  `;
  return sql<boolean>`(
    exists (${ofScope}) and not exists (
      ${ofScope} and (
        g.display = ${value} or strpos(g.display, to_json(${value}::text)::text) > 0
        or exists (select from usage_export.api_key k where ${scope} = 'key' and k.rotation = ${value} and k.api_key_id = g.display)
      )
    )
  )`;
}

/** The names of those whose key, tag or model no stored usage or cost has, although usage by keys, tags or models is stored. */
export async function unseenBudgets(db: Database, budgets: readonly Budget[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ name: string }>`
    select b.name
    from unnest(
      ${budgets.map(({ name }) => name)}::text[], ${budgets.map(({ scope }) => scope)}::text[],
      ${budgets.map(({ scopeValue }) => scopeValue ?? null)}::text[]
    ) as b (name, scope, scope_value)
    where ${isNeverSeen(sql.ref("b.scope"), sql.ref("b.scope_value"))}
  `.execute(db);
  return new Set(rows.map(({ name }) => name));
}

const useColumns = sql`
  p.name, p.project_ids as "projectIds", p.scope, p.scope_value as "scopeValue", p.metric, p.currency, p.cost_source as "costSource", p.period, p.period_start as start, p.period_end as "end",
  trim_scale(p.amount)::text as amount, trim_scale(p.used)::text as used, trim_scale(trunc(p.used * 100 / p.amount, 2))::text as percent,
  trim_scale(p.forecast)::text as forecast, trim_scale(p.forecast_low)::text as "forecastLow", trim_scale(p.forecast_high)::text as "forecastHigh",
  trim_scale(trunc(p.forecast * 100 / p.amount, 2))::text as "forecastPercent",
  p.thresholds::text[] as thresholds, p.reached::text[] as reached,
  p.days_missing as "daysMissing", p.days_not_final as "daysNotFinal", p.has_unpriced as "hasUnpriced", p.is_final as "isFinal",
  case when p.minimum_amount > 0 then trim_scale(p.minimum_amount)::text end as minimum,
  coalesce(p.used, 0) = 0 and ${isNeverSeen(sql.ref("p.scope"), sql.ref("p.scope_value"))} as "isNeverSeen",
  p.period_end < (now() at time zone 'UTC')::date as "isOver",
  exists (
    select from usage_export.budget b where b.name = p.name and p.period_start >= b.valid_from
      and (b.valid_until is null or p.period_start <= b.valid_until) and p.period_end < (b.recorded_at at time zone 'UTC')::date
  ) as "isBeforeStored"
`;
