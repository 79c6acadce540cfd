// Stores price books, and reads the views of estimated cost in the form of the tests' own calculation.

import { sql } from "kysely";
import { parseConfig } from "../../src/config/config.ts";
import type { Price } from "../../src/config/money.ts";
import type { Database } from "../../src/db/connection/database.ts";
import { storePrices } from "../../src/db/prices-and-budgets.ts";
import type { Cost } from "../usage/expected-costs.ts";

/** Parses prices as the program parses those of a configuration. */
export function parsedPrices(prices: readonly object[]): readonly Price[] {
  const service = { baseUrl: "https://api.example.com" };
  const projects = [{ id: "p", name: "p", key: { env: "KEY" } }];
  return parseConfig(JSON.stringify({ service, projects, prices }), "test", "/").prices;
}

/** Makes these the only prices. */
export async function storePriceBook(db: Database, ...prices: readonly object[]): Promise<void> {
  await storePrices(db, parsedPrices(prices));
}

/** The rows of bi.cost_estimated, with numbers without superfluous zeros. */
export async function storedCosts(db: Database): Promise<readonly Cost[]> {
  const { rows } = await sql<Cost>`
    select project_id as project, usage_date::text as day, model, endpoint, method, metric, status, currency,
      trim_scale(quantity)::text as quantity, trim_scale(price)::text as price, trim_scale(amount)::text as amount,
      trim_scale(tier_above)::text as tier
    from bi.cost_estimated
  `.execute(db);
  return rows;
}
