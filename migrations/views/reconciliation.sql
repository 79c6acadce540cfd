-- The rows are added up slice by slice, so that a query for a few days reads those days only. The service adds up doubles, so that the last
-- digits of two sums of the same usage may differ.
create or replace view bi.reconciliation as
select gs.project_id, gs.project, gs."grouping", g.usage_date, m.metric, m.total, m.sum_of_groups,
  m.sum_of_groups - m.total as difference, t.fetched_at as total_fetched_at, g.fetched_at as groups_fetched_at, gs.source
from usage_export.series gs
join usage_export.slice g on g.series_id = gs.series_id and g.fetch_no > 0
join usage_export.series ts on ts.project_id = gs.project_id and ts."grouping" = 'none' and ts.filter_key = '{}'
  and ts.superseded_at is null and ts.source = gs.source
join usage_export.slice t on t.series_id = ts.series_id and t.usage_date = g.usage_date and t.fetch_no > 0
cross join lateral (
  select {{metric: sum(r.$m) as $m}},
    -- The cost of a day is not known if one of its groups has no amount.
    case when count(r.dollars) = count(*) then sum(r.dollars) end as dollars
  from usage_export.slice_row r
  where r.series_id = t.series_id and r.usage_date = t.usage_date and not r.gone
) t_sum
cross join lateral (
  select {{metric: sum(r.$m) as $m}},
    -- The cost of a day is not known if one of its groups has no amount.
    case when count(r.dollars) = count(*) then sum(r.dollars) end as dollars
  from usage_export.slice_row r
  where r.series_id = g.series_id and r.usage_date = g.usage_date and not r.gone
) g_sum
cross join lateral (
  select metric, case when t.rows = 0 then 0 else total end as total,
    case when g.rows = 0 then 0 else sum_of_groups end as sum_of_groups
  from (values
    {{metric: ('$m', t_sum.$m, g_sum.$m)}},
    ('dollars', t_sum.dollars, g_sum.dollars)
  ) as v (metric, total, sum_of_groups)
  where (metric = 'dollars') = (gs.source = 'billing')
) m
-- Billing by tags adds up, as a charge has one set of tags.
where case when gs.source = 'billing' then gs."grouping" <> 'none' else gs."grouping" not in ('none', {{overlapping}}) end
  and gs.filter_key = '{}' and gs.superseded_at is null
  -- Two slices without rows agree. Most days of most projects may be empty, and adding up their rows would take the longest.
  and (t.rows > 0 or g.rows > 0)
  and abs(m.sum_of_groups - m.total) > 0.000000001 * greatest(abs(m.total), abs(m.sum_of_groups), 1);

comment on view bi.reconciliation is 'Days on which the sum over a grouping differs from the total, one row per metric. Tags and feature_set of usage, and filters, are left out.';
comment on column bi.reconciliation.metric is 'The metric, as its column is called; dollars for billing';
comment on column bi.reconciliation.total is 'The ungrouped total';
comment on column bi.reconciliation.sum_of_groups is 'The sum over the groups';
comment on column bi.reconciliation.difference is 'sum_of_groups - total';
comment on column bi.reconciliation.total_fetched_at is 'When the total was read, and the groups';
comment on column bi.reconciliation.groups_fetched_at is 'When the total was read, and the groups';
