// Compares the middle of docs/bi-views.md with the comments in a migrated database. `npm run generated` writes it anew.

import fs from "node:fs";
import path from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { columnComments } from "../../src/db/connection/view-files.ts";
import { METRICS } from "../../src/usage/metrics.ts";
import { testDatabase } from "../support/database.ts";

const PAGE = path.join(import.meta.dirname, "../../docs/bi-views.md");
const BEGIN = "<!-- Begin of what `npm run generated` writes from the comments in the database -->\n";
const END = "<!-- End of it -->\n";

type Column = { readonly name: string; readonly comment: string };
type View = { readonly name: string; readonly comment: string; readonly columns: readonly Column[] };

const { db } = await testDatabase();

test("docs/bi-views.md describes every view and its columns by their comments in the database", async () => {
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

/** Groups of columns that many views share. In a view's list, the name of a group stands for its columns. */
const GROUPS = {
  metrics: [...METRICS, "extra_metrics"],
  history: ["finality", "revision", "first_seen_at", "last_changed_at"],
  series: ["project_id", "project", "grouping", "filter"],
  day: ["project_id", "project", "usage_date"],
  charge: ["amount", "currency", "extra_metrics", "is_final", "fetched_at"],
};

function reference(views: readonly View[]): string {
  const common = columnComments();
  const used = new Set(views.flatMap(({ columns }) => columns.map(({ name }) => name)));
  const described = views.map(({ name, comment, columns }) => {
    const own = columns.filter((column) => common[column.name] !== column.comment);
    const shared = columns.filter((column) => !own.includes(column));
    return { name, text: `${comment}\n\n${list(own)}${sharedText(shared)}` };
  });
  const sections = [...Map.groupBy(described, textWithPlaceholder)].map(([text, alike]) => {
    const heading = alike.map(({ name }) => code(`bi.${name}`)).join(", ");
    return `### ${heading}\n\n${alike.length === 1 ? alike[0]?.text : text}`;
  });
  const commonColumns = Object.entries(common).flatMap(([name, comment]) => (used.has(name) ? { name, comment } : []));
  const groups = Object.entries(GROUPS).map(([word, names]) => `*${word}* are ${names.map(code).join(", ")}.`);
  return [
    "## Columns of several views\n",
    "A view that has one of these with another meaning says so.",
    ...groups,
    `\n${list(commonColumns)}\n## The views\n`,
    sections.join("\n"),
  ].join("\n");
}

/** The text with "DIMENSION" for the view's dimension: views that differ only in it share a section. */
function textWithPlaceholder({ name, text }: { name: string; text: string }): string {
  const [, dimension] = name.split(/_by_(?:single_)?/);
  return dimension === undefined ? text : text.replaceAll(new RegExp(`\\b${dimension}\\b`, "g"), "DIMENSION");
}

function sharedText(columns: readonly Column[]): string {
  const names = columns.map(({ name }) => name);
  const words = Object.entries(GROUPS).flatMap(([word, group]) =>
    group.every((one) => names.includes(one)) ? word : [],
  );
  const grouped = words.flatMap((word) => GROUPS[word as keyof typeof GROUPS]);
  const single = names.filter((name) => !grouped.includes(name)).map(code);
  return names.length === 0 ? "" : `- ${[...single, ...words.map((word) => `*${word}*`)].join(", ")}\n`;
}

/** A list of the columns, in which columns with the same comment share a line. */
function list(columns: readonly Column[]): string {
  const groups = [...Map.groupBy(columns, ({ comment }) => comment)];
  return groups
    .map(([comment, alike]) => `- ${alike.map(({ name }) => code(name)).join(", ")}: ${withoutNull(comment)}\n`)
    .join("");
}

/** The comment without its words about NULL: the page says once what NULL means for values and for numbers. */
function withoutNull(comment: string): string {
  return comment.replace(/; NULL (for no value|where the service sent none)$/, "");
}

function code(name: string): string {
  return `\`${name}\``;
}
