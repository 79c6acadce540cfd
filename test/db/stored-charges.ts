// Stores charges as the service would answer them: grouped and added up, with the tests' own arithmetic in whole numbers.

import type { Database } from "../../src/db/connection/database.ts";
import { daysOf, type Window } from "../../src/usage/days.ts";
import type { BillingDimension } from "../../src/usage/dimensions.ts";
import { dimensionsOf, type Filter, type Grouping, type Project } from "../../src/usage/series.ts";
import { decimal, exact } from "../usage/expected-costs.ts";
import { ALL_USAGE } from "../usage/sample-request.ts";
import { type BilledRow, billed } from "./stored-billing.ts";
import { storePriceBook } from "./stored-costs.ts";
import { configured, register, store, UNGUARDED } from "./stored-usage.ts";

/** What one request cost. `dollars` is a decimal number. */
type Charge = Readonly<Partial<Record<BillingDimension, string | readonly string[] | null>>> & {
  readonly day: string;
  readonly dollars: string;
};

export function sumOf(amounts: readonly string[]): string {
  return decimal(amounts.reduce((sum, amount) => sum + exact(amount), 0n));
}

/** One row for each group, with the sum of its charges. */
function rowsOf(charges: readonly Charge[], grouping: Grouping): readonly BilledRow[] {
  const names = dimensionsOf(grouping) as readonly BillingDimension[];
  const groupOf = (charge: Charge) => JSON.stringify(names.map((name) => [charge[name] ?? []].flat().sort()));
  return [...Map.groupBy(charges, groupOf).values()].map((same) => [
    sumOf(same.map(({ dollars }) => dollars)),
    Object.fromEntries(names.map((name) => [name, same[0]?.[name] ?? null])),
  ]);
}

/** Makes these prices per hour the only prices. */
export async function storeHourPrices(
  db: Database,
  ...prices: readonly (readonly [model: string, currency: string, price: string])[]
): Promise<void> {
  const hour = { metric: "hours", from: "2020-01-01" };
  await storePriceBook(db, ...prices.map(([model, currency, price]) => ({ ...hour, model, currency, price })));
}

type Part = { readonly filter?: Filter; readonly windowDays?: number };

/** Stores, for each grouping, the answer with these charges for the days of the window. */
export async function storeBills(
  db: Database,
  project: Project,
  groupings: readonly Grouping[],
  window: Window,
  charges: readonly Charge[],
  { filter = ALL_USAGE, ...part }: Part = {},
): Promise<void> {
  const all = groupings.map((grouping) => configured(project, grouping, { source: "billing", filter, ...part }));
  const ids: readonly number[] = await register(db, ...all);
  for (const [i, grouping] of groupings.entries()) {
    const slices = daysOf(window).map((day) => {
      const ofDay = charges.filter((charge) => charge.day === day);
      return billed(day, grouping, rowsOf(ofDay, grouping));
    });
    await store(db, ids[i] ?? 0, slices, UNGUARDED);
  }
}
