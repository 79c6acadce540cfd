-- The values of a group that may be a set, and their number. It is stored as a JSON array, or null. A null in the array is left out.
create or replace function usage_export.members(group_key text)
returns table (member text, members bigint) language sql immutable parallel safe
begin atomic
  select member, count(*) over ()
  from json_array_elements_text(nullif(
    -- Postgres refuses NUL in a text, so it is shown as JSON writes it. A backslash before the escape would make it plain text.
    case when strpos(group_key, '\u0000') = 0 then group_key else regexp_replace(group_key, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\\\u0000', 'g') end,
    'null'
  )::json) as member
  where member is not null
  -- Leaves no value out, but the planner then expects ten values of a set in place of a hundred.
  limit length(group_key);
end;
