// Reads why the cost changed from one period to another: what the service charges in projects whose billing is read, and in others the
// estimate: bi.cost_change, added up over projects, metrics and conditions of prices. Only the models with the largest changes are listed;
// the others are one sum.

import { sql } from "kysely";
import type { CostChange } from "../../report/cost-change.ts";
import type { Tx } from "../connection/transaction.ts";
import type { ChangeQuestion } from "./usage-change.ts";

type CostQuestion = Pick<ChangeQuestion, "period" | "before" | "projects" | "groupsMax">;

/** By project id; undefined for all that the question asks for. Each project is in one of them. */
type CostSources = { readonly billed: readonly string[]; readonly estimated: readonly string[] | undefined };

/**
 * A project is explained from its billing if that can be compared on as many days as its usage by model can. So in the first weeks of
 * billing it is still the estimate, which covers more of the cost.
 */
export async function chooseCostSources(tx: Tx, question: CostQuestion): Promise<CostSources> {
  const { period, before, projects = null } = question;
  const { rows: series } = await sql`
    select from usage_export.series where source = 'billing' and filter_key = '{}' and superseded_at is null limit 1
  `.execute(tx);
  if (series.length === 0) return { billed: [], estimated: question.projects };
  const { rows } = await sql<{ id: string; isBilled: boolean }>`
    with day as materialized (
      select n, ${period.start}::date + n as usage_date from generate_series(0, ${period.end}::date - ${period.start}::date) n
      union all
      select n, ${before.start}::date + n from generate_series(0, ${before.end}::date - ${before.start}::date) n
    ), compared as (
      select project_id, source, "grouping", n
      from bi.coverage c
      join day using (usage_date)
      where c.unfiltered and c.fetched_at is not null and c.status <> 'missing' and (c.source = 'billing' or c."grouping" = 'model')
        and c.usage_date between ${before.start}::date and ${period.end}::date
        and (${projects}::text[] is null or c.project = any(${projects}::text[]) or c.project_id = any(${projects}::text[]))
      group by project_id, source, "grouping", n
      having count(*) = 2
    ), days as (
      select project_id, source, count(*) as days from compared group by project_id, source, "grouping"
    ), compared_days as (
      select project_id, max(days) filter (where source = 'billing') as billed, max(days) filter (where source = 'usage') as estimated
      from days group by project_id
    )
    select s.project_id as id, coalesce(
        d.billed >= coalesce(d.estimated, 0) or d.billed > 0 and not exists (select from usage_export.price where replaced_at is null), false
      ) as "isBilled"
    from usage_export.series s
    left join compared_days d using (project_id)
    where s.superseded_at is null
      and (${projects}::text[] is null or s.project = any(${projects}::text[]) or s.project_id = any(${projects}::text[]))
    group by s.project_id, d.billed, d.estimated
  `.execute(tx);
  const ids = (isBilled: boolean) => rows.filter((row) => row.isBilled === isBilled).map(({ id }) => id);
  return { billed: ids(true), estimated: ids(true).length === 0 ? question.projects : ids(false) };
}

/** From how many rows of usage by model and of billing the changes are calculated. A row of either takes about as long. */
export async function countCostRows(
  tx: Tx,
  { period, before }: CostQuestion,
  { billed, estimated }: CostSources,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select coalesce(sum(sl.rows), 0)::integer as count
    from usage_export.series s
    join usage_export.slice sl on sl.series_id = s.series_id
      and (sl.usage_date between ${before.start}::date and ${before.end}::date
        or sl.usage_date between ${period.start}::date and ${period.end}::date)
    where s.superseded_at is null and case s.source
      when 'billing' then s.filter_key = '{}' and s.project_id = any(${billed}::text[])
      else s."grouping" = 'model' and exists (select from usage_export.price where replaced_at is null)
        and coalesce(s.project = any(${estimated ?? null}::text[]) or s.project_id = any(${estimated ?? null}::text[]), true)
    end
  `.execute(tx);
  return rows[0]?.count ?? 0;
}

/** One for each currency, in their order by name. Empty without a price book. */
export async function readCostChange(
  tx: Tx,
  { period, before, projects, groupsMax }: CostQuestion,
): Promise<readonly CostChange[]> {
  const { rows: prices } = await sql`select from usage_export.price where replaced_at is null limit 1`.execute(tx);
  if (prices.length === 0 || projects?.length === 0) return [];
  const { rows } = await sql<CostChange>`
    with change as materialized (
      select *, amount_before as before, amount_after as after, volume_effect as volume, price_effect as price
      from bi.cost_change(
        ${period.start}::date, ${period.end}::date, ${before.start}::date, ${before.end}::date, ${projects ?? null}::text[]
      )
    ), of_project as (
      select sum(days_compared) as days_compared, sum(days_lacking) as days_lacking, bool_and(is_final) as is_final
      from (
        select distinct project_id, days_compared, days_lacking_before + days_lacking_after as days_lacking, is_final from change
      ) one
    ), part as (
      select currency, part, model, sum(before) as before, sum(after) as after, sum(change) as change,
        sum(volume) as volume, sum(price) as price
      from change where currency is not null group by currency, part, model
    ), ranked as (
      select *, least(${groupsMax}::integer + 1, row_number() over (
          partition by currency, part order by abs(change) desc, greatest(before, after) desc, model collate "C" nulls last
        )) as rank,
        case
          when part <> 'group' then null
          when change = 0 then 'same'
          when before = 0 then 'new'
          when after = 0 then 'vanished'
          else 'changed'
        end as status
      from part
    ), summed as (
      -- Each rank but the last is one model.
      select currency, case when rank > ${groupsMax} then 'others' else part end as part, rank, count(*) as groups,
        case when rank <= ${groupsMax} then max(model) end as model, case when rank <= ${groupsMax} then max(status) end as status,
        sum(before) as before, sum(after) as after, sum(change) as change, sum(volume) as volume, sum(price) as price
      from ranked group by currency, ranked.part, rank
    ), shown as (
      select currency, json_agg(json_build_object(
          'part', part, 'group', model, 'status', status, 'groups', groups, 'before', trim_scale(before)::text,
          'after', trim_scale(after)::text, 'change', trim_scale(change)::text,
          'volume', trim_scale(volume)::text, 'price', trim_scale(price)::text
        ) order by array_position(array['group', 'others', 'days not compared'], part), rank) as parts
      from summed group by currency
    ), total as (
      select currency, sum(before) as before, sum(after) as after, sum(change) as change,
        coalesce(sum(before) filter (where part = 'group'), 0) as compared_before,
        coalesce(sum(after) filter (where part = 'group'), 0) as compared_after,
        coalesce(sum(volume), 0) as volume, coalesce(sum(price), 0) as price
      from part group by currency
    )
    select t.currency, trim_scale(t.before)::text as before, trim_scale(t.after)::text as after, trim_scale(t.change)::text as change,
      json_build_object(
        'before', trim_scale(t.compared_before)::text, 'after', trim_scale(t.compared_after)::text,
        'change', trim_scale(t.compared_after - t.compared_before)::text,
        'volume', trim_scale(t.volume)::text, 'price', trim_scale(t.price)::text
      ) as compared,
      p.days_compared::integer as "daysCompared", p.days_lacking::integer as "daysLacking", p.is_final as "isFinal",
      (select count(distinct coalesce(model, ''))::integer from change where status = 'unpriced') as "unpricedModels",
      (select json_agg(distinct project order by project) from change) as projects, s.parts
    from total t
    join shown s using (currency)
    cross join of_project p
    order by t.currency collate "C"
  `.execute(tx);
  return rows;
}
