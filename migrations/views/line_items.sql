create or replace view bi.line_items as
select line_item, label from usage_export.line_item;

comment on view bi.line_items is 'The readable name of each line item, one row each; every run of billing reads them.';
comment on column bi.line_items.line_item is 'As in bi.cost_by_line_item';
comment on column bi.line_items.label is 'The service''s name for it, such as Nova - 3 (Stream)';
