-- What counts for each budget, by day: one or more rows a project and day. Each part is a lateral query, so that a condition on the budget
-- or the day decides what is read at all.
create or replace view usage_export.budget_amount as
select b.name, b.valid_from, v.usage_date, v.amount, v.is_unpriced
from usage_export.budget b
cross join lateral (
  select u.usage_date,
    case b.metric
      when 'hours' then u.hours when 'total_hours' then u.total_hours when 'agent_hours' then u.agent_hours
      when 'tokens_in' then u.tokens_in when 'tokens_out' then u.tokens_out
      when 'tts_characters' then u.tts_characters when 'requests' then u.requests
    end as amount,
    false as is_unpriced
  from (
    select project_id, usage_date, hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters, requests
    from bi.usage_total where b.scope = 'all'
    union all
    select project_id, usage_date, hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters, requests
    from bi.usage_by_key where b.scope = 'key' and b.scope_value in (lineage, accessor)
    union all
    select project_id, usage_date, hours, total_hours, agent_hours, tokens_in, tokens_out, tts_characters, requests
    from bi.usage_by_single_tag where b.scope = 'tag' and tag = b.scope_value
    union all
    select m.project_id, m.usage_date, m.hours, m.total_hours, m.agent_hours, m.tokens_in, m.tokens_out, m.tts_characters, m.requests
    from bi.usage_by_model m
    join usage_export.budget_model g on g.name = b.name and g.valid_from = b.valid_from and g.model = m.model
    where b.scope = 'model'
  ) u
  where b.metric <> 'cost' and u.project_id = any(b.project_ids)
  union all
  select c.usage_date, case when c.currency = b.currency then c.amount end, c.currency is distinct from b.currency
  from bi.cost_estimated c
  where b.metric = 'cost' and c.status <> 'other_metric' and c.project_id = any(b.project_ids)
    -- A day whose billing was read has no estimate.
    and not exists (
      select from usage_export.budget_series s
      join usage_export.slice sl on sl.series_id = s.billing_series_id
      where s.name = b.name and s.valid_from = b.valid_from and s.project_id = c.project_id
        and sl.usage_date = c.usage_date and sl.fetched_at is not null
    )
    and (b.scope = 'all' or c.model in (
      select g.model from usage_export.budget_model g where g.name = b.name and g.valid_from = b.valid_from
    ))
  union all
  select c.usage_date, c.dollars, c.dollars is null
  from usage_export.visible_cost c
  left join usage_export.api_key k on b.scope = 'key' and k.project_id = c.project_id and k.api_key_id = c.accessor
  where b.metric = 'cost'
    and c.series_id in (
      select s.billing_series_id from usage_export.budget_series s
      where s.name = b.name and s.valid_from = b.valid_from
    )
    and case b.scope
      when 'all' then c."grouping" = 'none'
      when 'key' then c."grouping" = 'accessor' and b.scope_value in (k.rotation, c.accessor)
      when 'tag' then c."grouping" = 'tags' and exists (
        select from json_array_elements_text(
          -- Postgres refuses NUL in a text, so it is shown as JSON writes it. A backslash before the escape would be one of the tag's own.
          case when strpos(c.tags, '\u0000') = 0 then c.tags else regexp_replace(c.tags, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\\\u0000', 'g') end::json
        ) as tag where tag = b.scope_value
      )
    end
) v;
