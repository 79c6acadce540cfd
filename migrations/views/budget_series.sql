-- The series whose readings decide which days of a budget are known, and from which its amounts come. On days whose billing was read as the budget
-- needs it (billing_series_id), a cost is the billed one. On other days it is the estimate, which needs all usage by model and each series with
-- conditions that a price is for; the cost of a key or a tag has no estimate. A project without a series for the estimate has a row for its
-- billing alone. priced_days are the days on which a price is for a series with conditions: on other days the estimate does not need the series.
create or replace view usage_export.budget_series as
select b.name, b.valid_from, s.series_id, s.project_id, s.window_days, s.source,
  bill.series_id as billing_series_id, bill.window_days as billing_window_days, s.due_from, priced.days as priced_days,
  -- No later day of a project that has vanished or is not configured any more will be read. If only its usage is not exported any more, later
  -- days wait for its billing.
  case when s.retired_at is not null and (bill.series_id is null or bill.retired_at is not null) then
    coalesce((select max(sl.usage_date) from usage_export.slice sl where sl.series_id = s.series_id and sl.fetched_at is not null), '-infinity')
  end as read_through
from usage_export.budget b
cross join lateral (
  select case b.scope when 'all' then 'none' when 'key' then 'accessor' when 'tag' then 'tags' else 'model' end as "grouping"
) needed
join usage_export.series s on s.project_id = any(b.project_ids) and s.superseded_at is null
-- The service bills in dollars.
left join usage_export.series bill on b.metric = 'cost' and b.currency = 'USD'
  and bill.source = 'billing' and bill.project_id = s.project_id and bill.filter_key = '{}' and bill."grouping" = needed."grouping"
  and bill.superseded_at is null
  -- Billing that is not exported any more tells nothing about later days. It counts only if usage is not exported any more, either.
  and (bill.retired_at is null or s.retired_at is not null)
cross join lateral (
  select case when s.source = 'billing' or s.filter_key = '{}' then datemultirange(daterange(null, null)) else (
    select range_agg(daterange(price.valid_from, price.valid_until, '[]'))
    from usage_export.price where price.filter_key = s.filter_key
  ) end as days
) priced
where case
  when b.metric <> 'cost' then s.source = 'usage' and s.filter_key = '{}' and s."grouping" = needed."grouping"
  when s.series_id = bill.series_id then b.scope in ('key', 'tag') or not exists (
    select from usage_export.series e
    where e.source = 'usage' and e.project_id = s.project_id and e."grouping" = 'model' and e.filter_key = '{}' and e.superseded_at is null
  )
  when bill.series_id is not null and b.scope in ('key', 'tag') then false
  else s.source = 'usage' and s."grouping" = 'model' and (
    s.filter_key = '{}'
    -- A filter that is not exported any more is not read again, so no day may wait for it.
    or s.retired_at is null and priced.days is not null
  )
end;
