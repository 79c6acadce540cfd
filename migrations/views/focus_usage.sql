-- From one grouping a project and day: by accessor where that was read, as a key is what FOCUS calls a resource.
create or replace view bi.focus_usage as
select u.usage_date::timestamp at time zone 'UTC' as "ChargePeriodStart",
  (u.usage_date + 1)::timestamp at time zone 'UTC' as "ChargePeriodEnd",
  'Usage' as "ChargeCategory", m.description as "ChargeDescription",
  m.quantity as "ConsumedQuantity", m.unit as "ConsumedUnit",
  'AI and Machine Learning' as "ServiceCategory", 'Speech processing' as "ServiceName",
  u.project_id as "SubAccountId", u.project as "SubAccountName",
  u.accessor as "ResourceId", u.key_comment as "ResourceName",
  case when u.accessor is not null then 'API key' end as "ResourceType", u.tags as "Tags",
  u.usage_date as "x_UsageDate", m.metric as "x_Metric", u."grouping" as "x_Grouping", u.lineage as "x_Lineage",
  u.finality as "x_Finality", u.revision as "x_Revision", u.last_changed_at as "x_LastChangedAt"
from (
  select k.project_id, k.project, k.usage_date, 'accessor' as "grouping", k.accessor, k.key_comment, k.lineage,
    (select jsonb_object_agg(tag, true) from json_array_elements_text(k.key_tags::json) as tag) as tags,
    k.hours, k.total_hours, k.agent_hours, k.tokens_in, k.tokens_out, k.tts_characters, k.requests,
    k.finality, k.revision, k.last_changed_at
  from bi.usage_by_key k
  union all
  select t.project_id, t.project, t.usage_date, 'none', null, null, null, null,
    t.hours, t.total_hours, t.agent_hours, t.tokens_in, t.tokens_out, t.tts_characters, t.requests,
    t.finality, t.revision, t.last_changed_at
  from bi.usage_total t
  where not exists (
    select from usage_export.series s join usage_export.slice sl using (series_id)
    where s.source = 'usage' and s.project_id = t.project_id and s."grouping" = 'accessor' and s.filter_key = '{}' and s.superseded_at is null
      and sl.usage_date = t.usage_date and sl.fetch_no > 0
  )
) u
cross join lateral (values
  ('hours', u.hours, 'Hours', 'Hours of audio'),
  ('total_hours', u.total_hours, 'Hours', 'Total hours'),
  ('agent_hours', u.agent_hours, 'Hours', 'Hours of agent connections'),
  ('tokens_in', u.tokens_in, 'Tokens', 'Tokens received'),
  ('tokens_out', u.tokens_out, 'Tokens', 'Tokens produced'),
  ('tts_characters', u.tts_characters, 'Characters', 'Characters turned into speech'),
  ('requests', u.requests, 'Requests', 'Requests')
) as m (metric, quantity, unit, description)
where m.quantity > 0;

comment on view bi.focus_usage is 'All usage in the column names of FOCUS 1.1 (focus.finops.org), one row a project, day, API key and metric; without API key on days that were not read by accessor, so that nothing is there twice. Aligned, not conformant: it has no prices and costs, no currency, no billing account and billing period, no provider, publisher and invoice issuer, no SKU and no region, as the usage says nothing of them, and not the metrics of extra_metrics, whose units are not known. Add up one x_Metric at a time: hours, total_hours and agent_hours overlap.';
comment on column bi.focus_usage."ChargePeriodStart" is 'The first moment of the day of the usage, midnight in UTC';
comment on column bi.focus_usage."ChargePeriodEnd" is 'The first moment after the day of the usage, the next midnight in UTC: it does not belong to it';
comment on column bi.focus_usage."ChargeCategory" is 'Always Usage';
comment on column bi.focus_usage."ChargeDescription" is 'What was consumed, in words';
comment on column bi.focus_usage."ConsumedQuantity" is 'How much, in ConsumedUnit; always above 0, as what was not used has no row';
comment on column bi.focus_usage."ConsumedUnit" is 'Hours, Tokens, Characters or Requests';
comment on column bi.focus_usage."ServiceCategory" is 'Always AI and Machine Learning';
comment on column bi.focus_usage."ServiceName" is 'Always Speech processing: the usage names no service';
comment on column bi.focus_usage."SubAccountId" is 'The service''s identifier of the project';
comment on column bi.focus_usage."SubAccountName" is 'The project''s name in the configuration';
comment on column bi.focus_usage."ResourceId" is 'The accessor, which is the API key that was used; NULL for no value, and where x_Grouping is none. Unique within the project';
comment on column bi.focus_usage."ResourceName" is 'The API key''s comment; NULL where it is not known';
comment on column bi.focus_usage."ResourceType" is 'API key, or NULL without ResourceId';
comment on column bi.focus_usage."Tags" is 'The API key''s tags at the service as a JSON object, each true, as they have no values; NULL where there are none or they are not known. Not the tags of requests';
comment on column bi.focus_usage."x_UsageDate" is 'The day of the usage, a calendar day in UTC; the column to narrow a query by';
comment on column bi.focus_usage."x_Metric" is 'The metric, by the name of its column in bi.usage_total';
comment on column bi.focus_usage."x_Grouping" is 'Which series the row is from: accessor, or none where the day was not read by accessor';
comment on column bi.focus_usage."x_Lineage" is 'The rotation that made the API key, whichever of its keys was used; the accessor itself where none did';
comment on column bi.focus_usage."x_Finality" is 'open: the day was not over when it was read; settling: it is still read again; final: it is not read again';
comment on column bi.focus_usage."x_Revision" is 'How many times the numbers of this key and day have been written: 1 until one changes';
comment on column bi.focus_usage."x_LastChangedAt" is 'When a number of this key and day last changed';
