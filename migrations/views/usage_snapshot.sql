create or replace view bi.usage_snapshot as
select s.project_id, s.project, s."grouping", s.filter, t.snapshot_no as snapshot, t.taken_at,
  before.taken_at as previous_taken_at, t.rows, g.display as group_value,
  {{metric: r.$m}}, r.extra_metrics,
  {{metric: r.$m_change}},
  coalesce(least({{metric: r.$m_change}}) < 0, false) as fell,
  coalesce(r.gone, false) as gone, t.run_id
from usage_export.undated_snapshot t
join usage_export.series s using (series_id)
left join usage_export.undated_snapshot before
  on before.series_id = t.series_id and before.snapshot_no = t.snapshot_no - 1
-- A snapshot without rows has one row here.
left join lateral (
  select coalesce(n.group_id, o.group_id) as group_id, n.group_id is null as gone,
    {{metric: n.$m}}, n.extra_metrics,
    {{metric: case when before.snapshot_no is not null then case when n.group_id is null then 0 else n.$m end - case when o.group_id is null then 0 else o.$m end end as $m_change}}
  from (
    select * from usage_export.undated_row w where w.series_id = t.series_id and w.snapshot_no = t.content_no
  ) n
  full join (
    select * from usage_export.undated_row w where w.series_id = t.series_id and w.snapshot_no = before.content_no
  ) o on o.group_id = n.group_id
) r on true
left join usage_export.group_value g on g.group_id = r.group_id
where s.superseded_at is null;

comment on view bi.usage_snapshot is 'Answers without a date, one row per series, reading and group. No other view has these numbers. Never add up over snapshots.';
comment on column bi.usage_snapshot.snapshot is 'The number of the snapshot in its series, from 1';
comment on column bi.usage_snapshot.taken_at is 'When it was read';
comment on column bi.usage_snapshot.previous_taken_at is 'When the one before was read; NULL for the first';
comment on column bi.usage_snapshot.rows is 'How many rows the answer had';
{{metric ";\n": comment on column bi.usage_snapshot.$m_change is 'The rise since the snapshot before'}};
comment on column bi.usage_snapshot.fell is 'Whether a number is lower than in the snapshot before, so that its change is no usage';
comment on column bi.usage_snapshot.gone is 'Whether the group is no longer there; its numbers are NULL';
comment on column bi.usage_snapshot.run_id is 'The run that read it';
