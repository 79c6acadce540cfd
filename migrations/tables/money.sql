-- Prices, budgets, balances, and the days that were compared with the days before them.

-- The same usage of a day has one price at most.
create table usage_export.price (
  price_id     integer     generated always as identity primary key,
  metric       text        not null,
  -- A name, the beginning of names followed by *, or * alone for any usage.
  model        text        not null,
  -- The conditions of the series by model that is priced.
  filter_key   text        not null,
  currency     text        not null,
  -- A power of ten, or hour, minute or second.
  per          text        not null,
  valid_from   date        not null,
  -- The last day; null without an end.
  valid_until  date        check (valid_until >= valid_from)
);
comment on table usage_export.price is 'The price book, as configured';

create table usage_export.price_tier (
  price_id   integer not null references usage_export.price,
  -- The quantity of the month above which the tier begins, and with which it ends (null for the last tier).
  above      numeric not null check (above >= 0 and above < 'infinity'),
  below      numeric check (below > above and below < 'infinity'),
  -- As configured, for "per" units.
  price      numeric not null check (price >= 0 and price < 'infinity'),
  -- The exact price of one unit of the metric.
  unit_price numeric not null check (unit_price >= 0 and unit_price < 'infinity'),
  primary key (price_id, above)
);
comment on table usage_export.price_tier is 'The tiers of a price';

create table usage_export.budget (
  name         text        primary key,
  -- The first day of the first period. A period is a month or a day in UTC.
  valid_from   date        not null,
  project_ids  text[]      not null,
  -- Null for all projects that were configured.
  project      text,
  -- "all", or the dimension of scope_value.
  scope        text        not null check (scope in ('all', 'key', 'tag', 'model')),
  scope_value  text        check ((scope = 'all') = (scope_value is null)),
  metric       text        not null,
  -- An ISO 4217 code for the metric cost.
  currency     text        check ((metric = 'cost') = (currency is not null)),
  period       text        not null check (period in ('month', 'day')),
  amount       numeric     not null check (amount > 0 and amount < 'infinity'),
  -- In percent of the amount, in rising order.
  thresholds   numeric[]   not null,
  -- When it last changed.
  recorded_at  timestamptz not null default now()
);
comment on table usage_export.budget is 'Budgets, as configured';

create table usage_export.balance (
  project_id        text        not null,
  project           text        not null,
  balance_id        text        not null,
  amount            numeric     not null check (amount > '-infinity' and amount < 'infinity'),
  units             text,
  purchase_order_id text,
  read_at           timestamptz not null default now(),
  last_read_at      timestamptz not null default now(),
  -- When another amount was read, or the balance was not listed any more; null while it is the newest.
  ended_at          timestamptz
);
create unique index balance_newest on usage_export.balance (project_id, balance_id) where ended_at is null;
comment on table usage_export.balance is 'Balances: consecutive readings of the same amount are one row';

create table usage_export.line_item (
  line_item  text  primary key,
  label      text  not null
);
comment on table usage_export.line_item is 'The names of line items for people, as the service lists them';

create table usage_export.judged_day (
  project_id text        not null,
  filter_key text        not null,
  usage_date date        not null,
  -- The series whose sum was judged.
  series_id  integer     not null references usage_export.series,
  verdict    text        not null check (verdict in ('normal', 'high', 'low', 'not judged')),
  -- The metric that is furthest off; null without any usage.
  metric     text,
  -- What was stored when the day was judged.
  amount     numeric,
  expected   numeric,
  low        numeric,
  high       numeric,
  -- When this verdict was first found.
  judged_at  timestamptz not null default now(),
  -- A day that was not final is judged once more when it has become final.
  is_final   boolean     not null,
  primary key (project_id, filter_key, usage_date)
);
comment on table usage_export.judged_day is
  'Days that were compared with the days before them: when they were first complete, and once more when they became final';
