-- Each set of tags is counted under each of its tags, so the rows of a day overlap. All sets of a day are from one answer, so that they have the
-- same finality.
create or replace view bi.cost_by_single_tag as
select c.project_id, c.project, c.usage_date, m.member as tag, sum(c.amount) as amount,
  coalesce(sum(c.amount) filter (where m.members > 1), 0) as shared_amount, c.currency,
  c.finality, c.is_final, c.fetched_at, min(c.first_seen_at) as first_seen_at, max(c.last_changed_at) as last_changed_at
from bi.cost_by_tags c
left join lateral usage_export.members(c.tags) m on true
group by c.project_id, c.project, c.usage_date, m.member, c.currency, c.finality, c.is_final, c.fetched_at;

comment on view bi.cost_by_single_tag is 'What the service charges by single tag, one row per project, day and tag. A charge with several tags counts under each: never add up over tags.';
comment on column bi.cost_by_single_tag.tag is 'One of the tags of the charges; NULL for none';
comment on column bi.cost_by_single_tag.shared_amount is 'How much of the amount is counted under other tags, too';
