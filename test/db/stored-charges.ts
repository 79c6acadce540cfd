// Stores costs as the service would answer them: charges, grouped and added up by the tests' own arithmetic in whole numbers.

import type { Database } from "../../src/db/connection/database.ts";
import { daysOf, type Window } from "../../src/usage/days.ts";
import { type BILLING_GROUPINGS, dimensionsOf, type Filter, type Project } from "../../src/usage/series.ts";
import { ALL_USAGE } from "../usage/sample-request.ts";
import { billed } from "./stored-billing.ts";
import { storePriceBook } from "./stored-costs.ts";
import { configured, register, store, UNGUARDED } from "./stored-usage.ts";

export type BillingGrouping = (typeof BILLING_GROUPINGS)[number];

/** What one request cost. `dollars` is a decimal number. */
export type Charge = {
  readonly day: string;
  readonly accessor?: string | null;
  readonly deployment?: string | null;
  readonly line_item?: string | null;
  readonly tags?: readonly string[] | null;
  readonly dollars: string;
};

export type Bill = Required<Omit<Charge, "dollars" | "tags">> & {
  readonly tags: string | null;
  readonly amount: string;
};

const DECIMALS = 60;

/** In units of 10^-60. */
export function exact(text: string): bigint {
  const [, sign = "", whole = "", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  return BigInt(`${sign}${whole}${fraction.padEnd(DECIMALS, "0")}`);
}

/** Without superfluous zeros. */
function decimal(value: bigint): string {
  const digits = String(value < 0n ? -value : value).padStart(DECIMALS + 1, "0");
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, "");
  return `${value < 0n ? "-" : ""}${digits.slice(0, -DECIMALS)}${fraction && `.${fraction}`}`;
}

export function sumOf(amounts: readonly string[]): string {
  return decimal(amounts.reduce((sum, amount) => sum + exact(amount), 0n));
}

/** What is expected of the views: one row a day and group, in an order that depends on the values only. */
export function billsOf(charges: readonly Charge[], grouping: BillingGrouping): readonly Bill[] {
  const names = dimensionsOf(grouping);
  const placed = charges.map((charge) => ({
    day: charge.day,
    accessor: names.includes("accessor") ? (charge.accessor ?? null) : null,
    deployment: names.includes("deployment") ? (charge.deployment ?? null) : null,
    line_item: names.includes("line_item") ? (charge.line_item ?? null) : null,
    tags: names.includes("tags") && charge.tags?.length ? JSON.stringify([...new Set(charge.tags)].sort()) : null,
    dollars: charge.dollars,
  }));
  const groups = Map.groupBy(placed, ({ dollars: _, ...place }) => JSON.stringify(place));
  return inOrder(
    [...groups.values()].flatMap((group) => {
      const [first] = group;
      if (!first) return [];
      const { dollars: _, ...place } = first;
      return [{ ...place, amount: sumOf(group.map(({ dollars }) => dollars)) }];
    }),
  );
}

export function inOrder<T extends object>(rows: readonly T[]): readonly T[] {
  const key = (row: T) => JSON.stringify(Object.entries(row).sort());
  return rows.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
}

/** Stores prices of an hour as the only ones. */
export async function storeHourPrices(
  db: Database,
  ...prices: readonly (readonly [model: string, currency: string, price: string])[]
): Promise<void> {
  const hour = { metric: "hours", from: "2020-01-01" };
  await storePriceBook(db, ...prices.map(([model, currency, price]) => ({ ...hour, model, currency, price })));
}

type Part = { readonly filter?: Filter; readonly windowDays?: number };

/** Stores the answer that has these charges as the days of the window, for each of the groupings. */
export async function storeBills(
  db: Database,
  project: Project,
  groupings: readonly BillingGrouping[],
  window: Window,
  charges: readonly Charge[],
  { filter = ALL_USAGE, ...part }: Part = {},
): Promise<void> {
  const all = groupings.map((grouping) => configured(project, grouping, { source: "billing", filter, ...part }));
  const ids: readonly number[] = await register(db, ...all);
  for (const [i, grouping] of groupings.entries()) {
    const bills = billsOf(charges, grouping);
    const slices = daysOf(window).map((day) => {
      const ofDay = bills.filter((bill) => bill.day === day);
      return billed(
        day,
        grouping,
        ofDay.map(({ amount, tags, ...bill }) => [amount, { ...bill, tags: tags === null ? null : JSON.parse(tags) }]),
      );
    });
    await store(db, ids[i] ?? 0, slices, UNGUARDED);
  }
}
