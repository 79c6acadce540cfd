-- The groups of usage by model that a budget of a model counts: the model alone, and each set of models that holds it.
create or replace view usage_export.budget_model as
select b.name, b.valid_from, g.display as model
from usage_export.budget b
join usage_export.group_value g on g."grouping" = 'model' and b.scope = 'model' and case
  when g.display is null then false
  -- The text of this character can't be read from JSON.
  when position('\u0000' in g.group_key) > 0 then false
  else exists (select from json_array_elements_text(g.group_key::json) as member where member = b.scope_value)
end;
