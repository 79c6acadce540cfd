// Stores what is known of the service besides usage: its dialect, the keys and balances of each project, and the names of line items.

import { sql } from "kysely";
import { storableText } from "../text.ts";
import type { Dialect } from "../usage/dimensions.ts";
import type { Project } from "../usage/series.ts";
import type { Database } from "./connection/database.ts";
import { execute, inTransaction } from "./connection/transaction.ts";

export async function storedDialect(db: Database, serviceUrl: string): Promise<Dialect | undefined> {
  const query = db.selectFrom("usage_export.service_dialect").select("dialect").where("service", "=", serviceUrl);
  return (await query.executeTakeFirst())?.dialect;
}

export async function storeDialect(db: Database, serviceUrl: string, dialect: Dialect): Promise<void> {
  const store = sql`
    insert into usage_export.service_dialect as known (service, dialect) values (${serviceUrl}, ${dialect})
    on conflict (service) do update set dialect = excluded.dialect where known.dialect <> excluded.dialect
  `;
  await execute(db, store);
}

export type ListedKey = {
  readonly apiKeyId: string;
  readonly comment: string;
  readonly scopes: readonly string[];
  /** Undefined if the service sent none: the tags that it sent earlier are kept. */
  readonly tags?: readonly string[] | undefined;
  /** A time as the service writes it. A time that can't be parsed is ignored. */
  readonly created?: string | undefined;
};

/** `listed` is the whole list of a project. An empty list is ignored, because it lacks the very key that the service was called with. */
export async function storeListedKeys(db: Database, projectId: string, listed: readonly ListedKey[]): Promise<void> {
  const byId = new Map(listed.map((key) => [key.apiKeyId, key]));
  if (byId.size === 0) return;
  const keys = [...byId.values()].map(({ apiKeyId, comment, tags, scopes, created }) => ({
    api_key_id: apiKeyId,
    comment: storableText(comment),
    created_at: instantOf(created),
    // The order of tags and scopes means nothing and may differ between answers.
    tags: tags?.map(storableText).sort(),
    scopes: scopes.map(storableText).sort(),
  }));
  await inTransaction(db, async (tx) => {
    await sql`
      insert into usage_export.listed_key as known (project_id, api_key_id, comment, tags, scopes, created_at)
      select ${projectId}, listed.* from jsonb_to_recordset(${JSON.stringify(keys)})
        as listed (api_key_id text, comment text, tags text[], scopes text[], created_at timestamptz)
      on conflict (project_id, api_key_id) do update
      set comment = coalesce(nullif(excluded.comment, ''), known.comment), tags = coalesce(excluded.tags, known.tags),
        scopes = excluded.scopes, created_at = coalesce(excluded.created_at, known.created_at),
        last_seen_at = now(), unlisted_since = null
    `.execute(tx);
    await sql`
      update usage_export.listed_key set unlisted_since = now()
      where project_id = ${projectId} and unlisted_since is null and api_key_id <> all(${[...byId.keys()]}::text[])
    `.execute(tx);
  });
}

function instantOf(text: string | undefined): string | null {
  const ms = Date.parse(text ?? "");
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}

/** Stores the display names of line items. A newer name replaces an earlier one. */
export async function storeLineItems(db: Database, labels: readonly (readonly [name: string, label: string])[]) {
  if (labels.length === 0) return;
  const labelByName = Object.fromEntries(labels.map(([name, label]) => [storableText(name), storableText(label)]));
  const store = sql`
    insert into usage_export.line_item as known (line_item, label)
    select * from json_each_text(${JSON.stringify(labelByName)}::json) order by key
    on conflict (line_item) do update set label = excluded.label where known.label <> excluded.label
  `;
  await execute(db, store);
}

export type Balance = {
  readonly balanceId: string;
  /** Exact decimal text, which may be negative. */
  readonly amount: string;
  /** The currency as the service writes it; null if it sent none. */
  readonly units: string | null;
  readonly purchaseOrderId: string | null;
};

/** `balances`: all balances that the service lists. A stored one that is not among them, or differs from its listed one, is marked as ended. */
export async function storeBalances(db: Database, project: Project, balances: readonly Balance[]): Promise<void> {
  const texts = (name: keyof Balance) => balances.map((balance) => balance[name] && storableText(balance[name]));
  const listed = sql`
    unnest(
      ${texts("balanceId")}::text[], ${texts("amount")}::numeric[], ${texts("units")}::text[], ${texts("purchaseOrderId")}::text[]
    ) as listed (balance_id, amount, units, purchase_order_id)
  `;
  await inTransaction(db, async (tx) => {
    await sql`
      update usage_export.balance b set ended_at = now()
      where b.project_id = ${project.id} and b.ended_at is null and not exists (
        select from ${listed}
        where listed.balance_id = b.balance_id
          and (listed.amount, listed.units, listed.purchase_order_id) is not distinct from (b.amount, b.units, b.purchase_order_id)
      )
    `.execute(tx);
    await sql`
      insert into usage_export.balance as known (project_id, project, balance_id, amount, units, purchase_order_id)
      select ${project.id}, ${project.name}, balance_id, amount, units, purchase_order_id from ${listed}
      on conflict (project_id, balance_id) where ended_at is null
      do update set project = excluded.project, last_read_at = now()
      -- If another run has stored another amount meanwhile, last_read_at must not say that this run read that amount.
      where (known.amount, known.units, known.purchase_order_id)
        is not distinct from (excluded.amount, excluded.units, excluded.purchase_order_id)
    `.execute(tx);
  });
}
