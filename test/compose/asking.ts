// Runs the statements of a dashboard on a database, with the role that dashboards read with.

import pg from "pg";
import { afterAll } from "vitest";
import type { Dashboard, Query } from "./dashboards.ts";
import { asSent, type TimeRange, type Values } from "./grafana-sql.ts";

type Row = Readonly<Record<string, string | null>>;
type Answer = {
  /** `type` is the type's oid in pg_type. */
  readonly fields: readonly { readonly name: string; readonly type: number }[];
  readonly rows: readonly Row[];
};

/** The values that can be chosen, by the name of the variable. */
type Options = Readonly<Record<string, readonly string[]>>;

/** To be called at the top of a test file. All values are returned as text, so that numbers stay exact and days are not converted. */
export async function openReader(url: string, range: TimeRange) {
  const client = new pg.Client({ connectionString: url, types: { getTypeParser: () => (value: string) => value } });
  await client.connect();
  afterAll(() => client.end());

  async function ask(rawSql: string, values: Values): Promise<Answer> {
    await client.query("begin read only");
    try {
      await client.query("set local role usage_reader");
      const { fields, rows } = await client.query<Row>(asSent(rawSql, range, values));
      return { fields: fields.map(({ name, dataTypeID }) => ({ name, type: dataTypeID })), rows };
    } finally {
      await client.query("rollback");
    }
  }

  async function optionsOf(dashboard: Dashboard): Promise<Options> {
    // A variable's query may use the variables before it. Grafana reads an option from the columns __text and __value.
    const options: Record<string, readonly string[]> = {};
    for (const { name, query } of dashboard.templating.list) {
      const { rows } = await ask(query, firstChoices(dashboard, options));
      if (rows.some(({ __text }) => !__text)) throw new Error(`an option of ${name} has no text`);
      options[name] = rows.map(({ __value }) => __value ?? "");
    }
    return options;
  }

  /** Runs the statement with the values that the dashboard has when it is opened. */
  const askAsOpened = async ({ dashboard, rawSql }: Pick<Query, "dashboard" | "rawSql">) =>
    ask(rawSql, firstChoices(dashboard, await optionsOf(dashboard)));
  return { ask, optionsOf, askAsOpened };
}

/** The values when a dashboard is opened: all options of a variable that may have several values, else the first. */
export function firstChoices({ templating }: Dashboard, options: Options): Values {
  return Object.fromEntries(
    templating.list.map(({ name, multi }) => [name, multi ? (options[name] ?? []) : (options[name]?.[0] ?? "")]),
  );
}
