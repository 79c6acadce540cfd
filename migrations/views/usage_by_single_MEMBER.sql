-- One view for each dimension of usage whose groups may be sets. Each set is counted under each of its values, so the rows of a day overlap.
create or replace view bi.usage_by_single_MEMBER as
select u.project_id, u.project, u.usage_date, m.member as MEMBER,
  {{metric: sum(u.$m) as $m}}, coalesce(sum(u.requests) filter (where m.members > 1), 0) as shared_requests,
  -- All sets of a day are from one answer, so that they have the same finality.
  min(u.finality) as finality, min(u.first_seen_at) as first_seen_at, max(u.last_changed_at) as last_changed_at
from usage_export.visible_usage u
left join lateral usage_export.members(u.group_key) m on true
where u."grouping" = 'DIMENSION' and u.filter_key = '{}'
group by u.project_id, u.project, u.usage_date, m.member;

comment on view bi.usage_by_single_MEMBER is 'All usage by single MEMBER, one row per project, day and MEMBER. Usage with several values counts under each: never add up over them.';
comment on column bi.usage_by_single_MEMBER.MEMBER is 'One of the values that the requests have; NULL for none';
comment on column bi.usage_by_single_MEMBER.shared_requests is 'How many of the requests are counted under other values, too';
