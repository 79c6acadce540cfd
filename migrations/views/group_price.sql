-- The prices, each with the groups of models that it covers and their names. Because of "offset 0", a price is compared with each model once,
-- and not with each row of usage. For a materialized query the planner would have no statistics of the columns.
create or replace view usage_export.group_price as
select g.group_id, g.display as used_model, p.*
from usage_export.unit_price p
join usage_export.group_value g on g."grouping" = 'model' and case
  when p.model = '*' then true
  when g.display is null then false
  when right(p.model, 1) <> '*' then g.display = p.model
  -- Postgres can't read this character from JSON.
  when position('\u0000' in g.group_key) > 0 then false
  else not exists (
    select from json_array_elements_text(g.group_key::json) as member
    where not coalesce(starts_with(member, left(p.model, -1)), false)
  )
end
offset 0;
