-- Runs with the rights of its caller, as bi.usage_change.
create or replace function bi.unused_keys(days integer default 30)
returns table (
  project_id text, project text, api_key_id text, key_comment text, created_at timestamptz, last_used date, problem text
)
language sql stable
begin atomic
  with period as (
    select today - days as first_day, today from (select (now() at time zone 'UTC')::date as today) clock
  ), used as materialized (
    -- A row without a count of requests is usage, too.
    select u.project_id, u.accessor, max(u.usage_date) as last_used
    from bi.usage_by_accessor u where u.accessor is not null and coalesce(u.requests, 1) > 0
    group by u.project_id, u.accessor
  ), reading as (
    select c.project_id, max(c.project) as project, max(c.fetched_at) as read_at,
      count(*) filter (
        where c.source = 'usage' and c."grouping" = 'accessor' and c.unfiltered and c.usage_date < p.today and c.status <> 'missing' and c.fetched_at is not null
      ) as days_read
    from bi.coverage c join period p on c.usage_date >= p.first_day or c.usage_date is null
    where c.active group by c.project_id
  ), project as (
    select r.project_id, r.project,
      case
        when l.read_at is null then 'the service did not list its keys'
        when l.read_at < r.read_at - interval '1 day' then 'its keys were last listed on ' || to_char(l.read_at at time zone 'UTC', 'YYYY-MM-DD')
        when r.days_read < days then 'usage by accessor was read on ' || r.days_read || ' of the days'
        when l.are_unnamed then 'usage names none of its keys'
      end as problem
    from reading r
    left join (
      select k.project_id, max(k.last_seen_at) as read_at,
        count(u.accessor) = 0 and k.project_id in (select u.project_id from used u) as are_unnamed
      from bi.listed_keys k left join used u on u.project_id = k.project_id and u.accessor = k.api_key_id group by k.project_id
    ) l using (project_id)
  )
  select s.project_id, s.project, k.api_key_id, k.comment, k.created_at, k.last_used, s.problem
  from project s
  cross join period p
  left join (
    select l.*, u.last_used from bi.listed_keys l left join used u on u.project_id = l.project_id and u.accessor = l.api_key_id
    where l.unlisted_since is null
  ) k on k.project_id = s.project_id
    and coalesce(k.last_used, (coalesce(k.created_at, k.first_seen_at) at time zone 'UTC')::date) < p.first_day
  where k.api_key_id is not null or s.problem is not null
  order by s.project, k.last_used nulls first, k.created_at, k.api_key_id;
end;

comment on function bi.unused_keys(integer) is 'The listed API keys that had no usage on the last days before today (UTC), and are older than these days: one row per project and key. problem says why a key may be in use all the same, or why keys may be missing; a project with a problem and no such key has a row without a key.';
