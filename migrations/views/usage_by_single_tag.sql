-- Each set of tags is counted under each of its tags, so the rows of a day overlap.
create or replace view bi.usage_by_single_tag as
select u.project_id, u.project, u.usage_date, t.tag,
  {{metric: sum(u.$m) as $m}}, coalesce(sum(u.requests) filter (where t.tags > 1), 0) as shared_requests,
  -- All sets of a day are of one answer, and so have the same finality.
  min(u.finality) as finality, min(u.first_seen_at) as first_seen_at, max(u.last_changed_at) as last_changed_at
from bi.usage_by_tags u
left join lateral (
  select tag, count(*) over () as tags
  from json_array_elements_text(
    -- Postgres refuses NUL in a text, so it is shown as JSON writes it. A backslash before the escape would be one of the tag's own.
    case when strpos(u.tags, '\u0000') = 0 then u.tags else regexp_replace(u.tags, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\\\u0000', 'g') end::json
  ) as tag
  where tag is not null
  -- Leaves no tag out, but the planner then expects ten tags of a set in place of a hundred.
  limit length(u.tags)
) t on true
group by u.project_id, u.project, u.usage_date, t.tag;

comment on view bi.usage_by_single_tag is 'All usage by tag, one row a project, day and tag. Usage with several tags counts under each of them: never add up over tags.';
comment on column bi.usage_by_single_tag.tag is 'A tag of the requests; NULL for usage without tags';
comment on column bi.usage_by_single_tag.shared_requests is 'How many of the requests are counted under other tags, too';
