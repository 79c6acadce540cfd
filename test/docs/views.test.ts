// Writes the middle of docs/bi-views.md from the comments in a migrated database: what each view is, and what its columns mean.
// `npm run docs` writes it anew.

import fs from "node:fs";
import path from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { testDatabase } from "../support/database.ts";

const PAGE = path.join(import.meta.dirname, "../../docs/bi-views.md");
const BEGIN = "<!-- Begin of what `npm run docs` writes from the comments in the database -->\n";
const END = "<!-- End of it -->\n";
/** A column with the same meaning in so many views is explained once for all of them. */
const VIEWS_MIN = 3;

type Column = { readonly name: string; readonly comment: string };
type View = { readonly name: string; readonly comment: string; readonly columns: readonly Column[] };

const { db } = await testDatabase();

test("docs/bi-views.md has every view with its columns, as their comments in the database say", async () => {
  const { rows: views } = await sql<View>`
    select c.relname as name, obj_description(c.oid) as comment, (
      select json_agg(json_build_object('name', attname, 'comment', col_description(c.oid, attnum)) order by attnum)
      from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped
    ) as columns
    from pg_class c
    where relnamespace = 'bi'::regnamespace and relkind = 'v'
    order by relname collate "C"
  `.execute(db);
  const page = fs.readFileSync(PAGE, "utf8");
  const [head, rest = ""] = page.split(BEGIN);
  const [, tail] = rest.split(END);
  await expect(`${head}${BEGIN}\n${reference(views)}\n${END}${tail}`).toMatchFileSnapshot(PAGE);
});

function reference(views: readonly View[]): string {
  const common = commonColumns(views);
  const isCommon = ({ name, comment }: Column) => common.get(name) === comment;
  const sections = views.map(({ name, comment, columns }) => {
    const names = columns.map((column) => `\`${column.name}\``).join(", ");
    const own = columns.filter((column) => !isCommon(column));
    return `### \`bi.${name}\`\n\n${comment}\n\nColumns: ${names}.\n${own.length > 0 ? `\n${table(own)}` : ""}`;
  });
  const shared = [...common].map(([name, comment]) => ({ name, comment }));
  return [
    `## Columns of several views\n\nWhere a view explains one of these itself, that meaning holds.\n\n${table(shared)}`,
    "## The views\n",
    ...sections,
  ].join("\n");
}

/** For each name that several views have, the meaning that most of them share. */
function commonColumns(views: readonly View[]): ReadonlyMap<string, string> {
  const byName = Map.groupBy(
    views.flatMap(({ columns }) => columns),
    ({ name }) => name,
  );
  const common = new Map<string, string>();
  for (const [name, columns] of byName) {
    const counts = [...Map.groupBy(columns, ({ comment }) => comment)].sort(([, a], [, b]) => b.length - a.length);
    const [first] = counts;
    if (first && first[1].length >= VIEWS_MIN) common.set(name, first[0]);
  }
  return common;
}

function table(columns: readonly Column[]): string {
  const rows = columns.map(({ name, comment }) => `| \`${name}\` | ${comment.replaceAll("|", "\\|")} |\n`);
  return `| Column | Meaning |\n| --- | --- |\n${rows.join("")}`;
}
