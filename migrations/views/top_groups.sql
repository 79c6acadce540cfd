-- The function runs with the rights of its caller.
create or replace function bi.top_groups(
  by_grouping text, top integer default 5, by_metric text default 'requests', days integer default 28
)
returns table (project_id text, project text, place integer, group_value text, key_comment text, amount numeric)
language sql stable
begin atomic
  select g.project_id, g.project, g.place, g.group_value, k.comment, g.amount
  from (
    select u.project_id, max(u.project) as project, u.lineage as group_value, max(u.group_value) as accessor, sum(v.amount) as amount,
      (row_number() over (partition by u.project_id order by sum(v.amount) desc, u.lineage))::integer as place
    from bi.usage_by_group u
    cross join lateral (select case by_metric {{metric " ": when '$m' then u.$m}} end as amount) v
    where u."grouping" = by_grouping and v.amount is not null
      and u.usage_date >= (now() at time zone 'UTC')::date - days and u.usage_date < (now() at time zone 'UTC')::date
    group by u.project_id, u.lineage
  ) g
  left join bi.listed_keys k on by_grouping = 'accessor' and k.project_id = g.project_id and k.api_key_id = g.accessor
  where g.place <= top
  order by g.project, g.project_id, g.place;
end;

comment on function bi.top_groups(text, integer, text, integer) is 'The groups with the most usage on the last days before today (UTC): one row per project and place from 1. The groups are those of bi.usage_by_group; keys are by lineage, with the comment of one of them.';
