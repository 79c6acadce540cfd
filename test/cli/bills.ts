// Reads the same costs from two sources, for a test to compare: from the service's answers, with every digit as it was sent, and from
// the views that BI tools read.

import { sql } from "kysely";
import type { Database } from "../../src/db/connection/database.ts";
import type { Emulator } from "../support/emulator.ts";
import { PROJECT_ID } from "./program-context.ts";

const DIMENSIONS = ["accessor", "deployment", "line_item", "tags"] as const;

/** Every set of dimensions; the empty one is the total. */
export const BILLING_GROUPINGS: readonly (readonly string[])[] = Array.from(
  { length: 2 ** DIMENSIONS.length },
  (_, n) => DIMENSIONS.filter((_, i) => n & (1 << i)),
);

/** A dimension that is not grouped by is null. */
export type Bill = Readonly<Record<(typeof DIMENSIONS)[number], string | null>> & {
  readonly day: string;
  readonly amount: string;
};

type SentRow = { readonly dollars: string; readonly grouping: Readonly<Record<string, string | string[] | null>> };

/** `conditions` are the query parameters of a filter. */
export async function servedBills(
  emulator: Emulator,
  key: string,
  groupings: readonly string[],
  { start, end }: { readonly start: string; readonly end: string },
  conditions = "",
): Promise<readonly Bill[]> {
  const query = [`start=${start}&end=${end}`, ...groupings.map((name) => `grouping=${name}`), conditions].join("&");
  const { results } = await ask<{ results: SentRow[] }>(emulator, key, `billing/breakdown?${query}`);
  return inOrder(
    results.map(({ dollars, grouping }) => ({
      day: String(grouping.start),
      accessor: textOf(grouping.accessor),
      deployment: textOf(grouping.deployment),
      line_item: textOf(grouping.line_item),
      tags: grouping.tags == null ? null : JSON.stringify([grouping.tags].flat().toSorted()),
      amount: dollars,
    })),
  );
}

/** The amounts of all balances, by their ids. */
export async function servedBalances(emulator: Emulator, key: string): Promise<Readonly<Record<string, string>>> {
  const { balances } = await ask<{ balances: { balance_id: string; amount: string }[] }>(emulator, key, "balances");
  return Object.fromEntries(balances.map(({ balance_id, amount }) => [balance_id, amount]));
}

/** The names of all line items for people. */
export async function servedLineItems(emulator: Emulator, key: string): Promise<Readonly<Record<string, string>>> {
  return (await ask<{ line_items: Record<string, string> }>(emulator, key, "billing/fields")).line_items;
}

/** Numbers are texts. */
async function ask<T>(emulator: Emulator, key: string, path: string): Promise<T> {
  const response = await fetch(`${emulator.url}/v1/projects/${PROJECT_ID}/${path}`, {
    headers: { authorization: `Token ${key}` },
  });
  if (response.status !== 200) throw new Error(`${path}: ${response.status}`);
  return JSON.parse(await response.text(), asSent);
}

function asSent(_: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" ? context?.source : value;
}

function textOf(value: string | string[] | null | undefined): string | null {
  return typeof value === "string" ? value : null;
}

/** The rows of a view of bi, of the one grouping or filter if the view has several. */
export async function storedBills(db: Database, view: string, where = sql`true`): Promise<readonly Bill[]> {
  const { rows } = await sql<{ row: Bill }>`
    select json_build_object(
      'day', usage_date, 'accessor', v.row->>'accessor', 'deployment', v.row->>'deployment', 'line_item', v.row->>'line_item',
      'tags', v.row->>'tags', 'amount', trim_scale(amount)::text
    ) as row
    from ${sql.table(`bi.${view}`)} b cross join lateral (select to_jsonb(b) as row) v
    where ${where}
  `.execute(db);
  return inOrder(rows.map(({ row }) => row));
}

function inOrder(bills: readonly Bill[]): readonly Bill[] {
  const key = ({ day, accessor, deployment, line_item, tags }: Bill) =>
    JSON.stringify([day, accessor, deployment, line_item, tags]);
  return bills.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
}
