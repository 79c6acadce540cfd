-- Every revision of every row. The newest one has no superseded_at.
create or replace view usage_export.row_revision as
select series_id, usage_date, group_id, revision,
  case when gone then 'gone' when returned or revision = 1 then 'appeared' else 'changed' end as kind,
  restates, first_seen_at, last_changed_at as seen_at, null::timestamptz as superseded_at,
  {{metric: $m}}, extra_metrics, dollars
from usage_export.slice_row
union all
select series_id, usage_date, group_id, revision,
  case when gone then 'gone' when returned or revision = 1 then 'appeared' else 'changed' end as kind,
  restates, first_seen_at, last_changed_at as seen_at, superseded_at,
  {{metric: $m}}, extra_metrics, dollars
from usage_export.superseded_row;
