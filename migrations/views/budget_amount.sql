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
    from bi.usage_by_key where b.scope = 'key' and lineage = b.scope_value
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
    and (b.scope = 'all' or c.model in (
      select g.model from usage_export.budget_model g where g.name = b.name and g.valid_from = b.valid_from
    ))
) v;
