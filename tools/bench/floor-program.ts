// A program: the least that an export can do. It fetches, parses without losing a digit, and merges into the same tables. It checks
// nothing else, retries nothing, and knows one process. floor.ts compares the product with it, and checks that both store the same rows.
// Reads SERVICE, DATABASE_URL and CAP from the environment, and the requests from standard input, as JSON.

import { createHash } from "node:crypto";
import { json } from "node:stream/consumers";
import pg from "pg";
import { Pool } from "undici";

export type FloorRequest = { readonly seriesId: number; readonly grouping: string; readonly path: string };

const METRICS = ["hours", "total_hours", "agent_hours", "tokens_in", "tokens_out", "tts_characters", "requests"];
/** Numbers that a double may not hold: more than 15 digits, or an exponent. A match inside a text only costs time. */
const POSSIBLY_INEXACT = /[:[,]\s*(-?(?:[\d.]{16,}(?:[eE][+-]?\d+)?|[\d.]+[eE][+-]?\d+))/g;
const BATCH_SLICES_MAX = 50;

type Result = Record<string, unknown> & { readonly grouping: Record<string, unknown> & { readonly start: string } };
/** The row's group as the service sent it, its metrics in the order of METRICS, and its other numbers as JSON. */
type Row = { readonly group: string; readonly values: readonly string[]; readonly extra: string | null };
type Slice = Omit<FloorRequest, "path"> & { readonly day: string; readonly fetchNo: string; readonly rows: Row[] };

const { SERVICE = "", DATABASE_URL = "", CAP = "1" } = process.env;
const requests = (await json(process.stdin)) as readonly FloorRequest[];
const service = new Pool(SERVICE, { connections: Number(CAP) });
const db = new pg.Client(DATABASE_URL);
await db.connect();
const takeNumbers = "select nextval('usage_export.fetch_no') as no from generate_series(1, $1)";
const { rows: fetchNos } = await db.query(takeNumbers, [requests.length]);
const { rows: stored } = await db.query(
  "select series_id || ' ' || usage_date as slice, content_hash from usage_export.slice where series_id = any($1)",
  [[...new Set(requests.map(({ seriesId }) => seriesId))]],
);
const storedHashes = new Map<string, string>(stored.map(({ slice, content_hash }) => [slice, content_hash]));
const groupIds = new Map<string, number>();

const waiting: Slice[] = [];
let writing: Promise<void> | undefined;

function slicesOf({ seriesId, grouping }: FloorRequest, fetchNo: string, text: string): Iterable<Slice> {
  const slices = new Map<string, Slice>();
  for (const row of parse(text).results) {
    const day = row.grouping.start;
    const slice: Slice = slices.get(day) ?? { seriesId, grouping, day, fetchNo, rows: [] };
    slices.set(day, slice);
    slice.rows.push(rowOf(row, grouping));
  }
  return slices.values();
}

function parse(text: string): { readonly results: readonly Result[] } {
  const isExact = ([, source = ""]: readonly string[]) => String(Number(source)) === source;
  if (text.matchAll(POSSIBLY_INEXACT).every(isExact)) return JSON.parse(text);
  return JSON.parse(text, (_key: string, value: unknown, context?: { source?: string }) =>
    typeof value === "number" && String(value) !== context?.source ? { source: context?.source } : value,
  );
}

function rowOf(row: Result, grouping: string): Row {
  const more = Object.keys(row).filter((name) => !METRICS.includes(name) && name !== "grouping");
  const extra = more.sort().map((name) => `${JSON.stringify(name)}:${numberText(row[name])}`);
  const group = JSON.stringify(row.grouping[grouping]) ?? "null";
  const values = METRICS.map((metric) => numberText(row[metric]));
  return { group, values, extra: extra.length > 0 ? `{${extra}}` : null };
}

function numberText(value: unknown): string {
  if (typeof value === "number") return String(value);
  if (value === undefined || value === null) return "NULL";
  if (typeof value === "object" && "source" in value) return String(value.source);
  throw new Error("expected a number");
}

/** What arrives while a batch is written is in the next one. */
async function writeWaiting(): Promise<void> {
  while (waiting.length > 0) {
    const batch = waiting.splice(0, BATCH_SLICES_MAX).map((slice) => ({ ...slice, hash: hashOf(slice) }));
    const changed = batch.filter(({ seriesId, day, hash }) => storedHashes.get(`${seriesId} ${day}`) !== hash);
    if (changed.length > 0) await merge(changed);
    const same = batch.filter((slice) => !changed.includes(slice));
    if (same.length > 0) await db.query({ name: "read again", text: READ_AGAIN, values: keysOf(same) });
  }
  writing = undefined;
}

/** Another order of the same rows has another hash: then the merge finds nothing to write. */
function hashOf({ rows }: Slice): string {
  const lines = rows.map(({ group, values, extra }) => `${group}\t${values}\t${extra}`);
  return createHash("sha256").update(lines.join("\n")).digest("hex");
}

const READ_AGAIN = `
  update usage_export.slice sl set fetch_no = s.fetch_no, fetched_at = now()
  from unnest($1::integer[], $2::date[], $3::bigint[]) as s (series_id, usage_date, fetch_no)
  where sl.series_id = s.series_id and sl.usage_date = s.usage_date and sl.fetch_no < s.fetch_no`;
const names = [...METRICS, "extra_metrics"];
const columns = names.join(", ");
const columnsOf = (table: string) => names.map((name) => `${table}.${name}`).join(", ");
const MERGE = `
  with s as (
    select s.*, coalesce(sl.fetch_no, 0) > 0 as restates
    from unnest($1::integer[], $2::date[], $3::bigint[], $4::text[], $5::integer[]) with ordinality
      as s (series_id, usage_date, fetch_no, content_hash, rows, slice_no)
    left join usage_export.slice sl using (series_id, usage_date)
  ), slice as (
    insert into usage_export.slice as sl (series_id, usage_date, status, fetch_no, fetched_at, closed_at, content_hash, rows)
    select series_id, usage_date, 'complete', fetch_no, now(), case when usage_date < current_date then now() end, content_hash, rows from s
    on conflict (series_id, usage_date) do update
    set status = 'complete', fetch_no = excluded.fetch_no, fetched_at = now(), rows = excluded.rows,
      closed_at = coalesce(sl.closed_at, excluded.closed_at), content_hash = excluded.content_hash
    where sl.fetch_no < excluded.fetch_no
    returning series_id, usage_date
  ), incoming as (
    select unnest($6::integer[]) as slice_no, unnest($7::integer[]) as group_id,
      ${METRICS.map((name, i) => `unnest($${i + 8}::numeric[]) as ${name}`).join(", ")}, unnest($15::text[])::jsonb as extra_metrics
  ), stored as (select s.slice_no, r.* from s join usage_export.slice_row r using (series_id, usage_date)), d as (
    select s.series_id, s.usage_date, s.restates, i.group_id is null as gone, coalesce(i.group_id, r.group_id) as new_id,
      r.group_id is not null and r.gone as returned, coalesce(r.revision, 0) + 1 as revision, ${columnsOf("i")}
    from incoming i full join stored r on r.slice_no = i.slice_no and r.group_id = i.group_id
    join s on s.slice_no = coalesce(i.slice_no, r.slice_no) join slice on slice.series_id = s.series_id and slice.usage_date = s.usage_date
    where r.group_id is null or r.gone <> (i.group_id is null)
      or (i.group_id is not null and (${columnsOf("r")}) is distinct from (${columnsOf("i")}))
  ), superseded as (
    insert into usage_export.superseded_row (series_id, usage_date, group_id, ${columns}, gone, revision, restates, returned,
      first_seen_at, last_changed_at, superseded_at)
    select r.series_id, r.usage_date, r.group_id, ${columnsOf("r")}, r.gone, r.revision, r.restates, r.returned,
      r.first_seen_at, r.last_changed_at, now()
    from d join usage_export.slice_row r on r.series_id = d.series_id and r.usage_date = d.usage_date and r.group_id = d.new_id
    where d.revision > 1
  ), updated as (
    update usage_export.slice_row r set (${columns}) = (select ${columnsOf("d")}), gone = d.gone, returned = d.returned,
      revision = d.revision, restates = d.restates, last_changed_at = now()
    from d where d.revision > 1 and r.series_id = d.series_id and r.usage_date = d.usage_date and r.group_id = d.new_id
  )
  insert into usage_export.slice_row (series_id, usage_date, group_id, ${columns}, revision, restates, first_seen_at, last_changed_at)
  select series_id, usage_date, new_id, ${columns}, 1, restates, now(), now() from d where revision = 1`;

async function merge(slices: readonly (Slice & { readonly hash: string })[]): Promise<void> {
  await internGroups(slices);
  const rows = slices.flatMap((slice) => slice.rows);
  const parts = [
    ...keysOf(slices),
    slices.map(({ hash }) => hash),
    slices.map(({ rows }) => rows.length),
    slices.flatMap(({ rows }, i) => rows.map(() => i + 1)),
    slices.flatMap(({ grouping, rows }) => rows.map(({ group }) => groupIds.get(`${grouping} ${group}`))),
    ...METRICS.map((_, i) => rows.map(({ values }) => values[i])),
  ];
  const extras = rows.some(({ extra }) => extra !== null) ? rows.map(({ extra }) => extra) : [];
  await db.query({ name: "merge", text: MERGE, values: [...parts.map((part) => `{${part.join(",")}}`), extras] });
}

function keysOf(slices: readonly Slice[]): unknown[][] {
  return [slices.map(({ seriesId }) => seriesId), slices.map(({ day }) => day), slices.map(({ fetchNo }) => fetchNo)];
}

async function internGroups(slices: readonly Slice[]): Promise<void> {
  const all = slices.flatMap(({ grouping, rows }) => rows.map(({ group }) => `${grouping} ${group}`));
  const unknown = [...new Set(all)].filter((name) => !groupIds.has(name));
  if (unknown.length === 0) return;
  const groups = unknown.map((name) => [name, ...groupOf(name)]);
  const values = [0, 1, 2, 3, 4].map((i) => groups.map((group) => group[i]));
  await db.query(
    `insert into usage_export.group_value ("grouping", key_hash, group_key, display)
    select * from unnest($1::text[], $2::text[], $3::text[], $4::text[]) on conflict do nothing`,
    values.slice(1),
  );
  const { rows } = await db.query(
    `select w.name, g.group_id from unnest($1::text[], $2::text[], $3::text[]) as w (name, "grouping", key_hash)
    join usage_export.group_value g using ("grouping", key_hash)`,
    values.slice(0, 3),
  );
  for (const { name, group_id } of rows) groupIds.set(name, group_id);
}

function groupOf(name: string): (string | null)[] {
  const [grouping = "", sent = ""] = name.split(/ (.*)/s);
  let [key, display]: [string, string | null] = [sent, null];
  if (sent !== "null") {
    const values = [...new Set<string>([JSON.parse(sent)].flat())].sort();
    key = JSON.stringify(values);
    display = grouping === "tags" || values.length > 1 ? key : (values[0] ?? null);
  }
  return [grouping, createHash("sha256").update(key).digest("hex"), key, display];
}

const queue = requests.entries();
await Promise.all(
  Array.from({ length: Number(CAP) }, async () => {
    for (const [i, request] of queue) {
      const { statusCode, body } = await service.request({ method: "GET", path: request.path });
      const text = await body.text();
      if (statusCode !== 200) throw new Error(`the service answered ${statusCode}`);
      waiting.push(...slicesOf(request, fetchNos[i].no, text));
      writing ??= writeWaiting();
      while (waiting.length > BATCH_SLICES_MAX) await writing;
    }
  }),
);
if (writing !== undefined) await writing;
await Promise.all([db.end(), service.destroy()]);
