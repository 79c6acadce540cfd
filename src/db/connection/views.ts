// Recreates the views and functions of migrations/views whose text changed, and checks whether a database has those of this
// program.

import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { sql } from "kysely";
import { AppError } from "../../errors.ts";
import { MIGRATIONS_FOLDER, programVersion } from "../../package-files.ts";
import { addsUp, TOTAL_GROUPINGS, USAGE_DIMENSIONS } from "../../usage/dimensions.ts";
import { METRIC_TABLE } from "../../usage/metrics.ts";
import { type Tx, tryStatement } from "./transaction.ts";

const VIEWS_FOLDER = path.join(MIGRATIONS_FOLDER, "views");
/** The comments on columns by their names, of views that have none of their own on them. */
const COLUMN_COMMENTS = path.join(MIGRATIONS_FOLDER, "columns.json");

/** A view or a function. */
type View = {
  /** Including its schema. */
  readonly name: string;
  /** Creates it, with its comments. */
  readonly text: string;
  readonly hash: string;
};

export type StoredView = {
  readonly name: string;
  readonly hash: string;
  readonly programVersion: string;
  /** False if somebody dropped it since. */
  readonly exists: boolean;
};

/** SQLSTATE of a replacement that changes columns: Postgres only allows adding columns at the end. */
const COLUMNS_CHANGED = new Set(["42P16", "42P13"]);

/** Read at once: every command does it, and a promise for each of thirty small files takes longer than reading them. */
function readViews(): readonly View[] {
  const files = fs.readdirSync(VIEWS_FOLDER).filter((file) => file.endsWith(".sql"));
  const comments = fs.readFileSync(COLUMN_COMMENTS, "utf8");
  return files
    .flatMap((file) => withDimensions(file, fs.readFileSync(path.join(VIEWS_FOLDER, file), "utf8")))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([file, text]) => parseView(file, text, comments));
}

/** A file with DIMENSION in its name is the text of a view for each dimension of usage. */
function withDimensions(file: string, text: string): readonly (readonly [file: string, text: string])[] {
  if (!file.includes("DIMENSION")) return [[file, text]];
  return USAGE_DIMENSIONS.map((one) => [file.replace("DIMENSION", one), text.replaceAll("DIMENSION", one)]);
}

function parseView(file: string, written: string, comments: string): View {
  const [, name] = /^create or replace (?:view|function) ((?:bi|usage_export)\.\w+)/m.exec(written) ?? [];
  if (name?.split(".")[1] !== path.basename(file, ".sql")) {
    throw new Error(
      `migrations/views/${file}: expected "create or replace view" or "function" and the name of the file`,
    );
  }
  const text = expandLists(written);
  // Comments that change are written by creating the views again.
  const hash = createHash("sha256").update(`${text}${comments}`.replaceAll("\r\n", "\n")).digest("hex");
  return { name, text, hash };
}

/** The meaning of a column that many views have, by its name. */
export function columnComments(): Readonly<Record<string, string>> {
  return {
    ...JSON.parse(fs.readFileSync(COLUMN_COMMENTS, "utf8")),
    ...Object.fromEntries(
      METRIC_TABLE.map(({ name, meaning }) => [name, `${meaning}; NULL where the service sent none`]),
    ),
  };
}

async function commentColumns(tx: Tx, views: readonly View[]): Promise<void> {
  const comments = columnComments();
  const { rows } = await sql<{ view: string; column: string }>`
    select concat('bi.', relname) as view, attname as "column"
    from pg_attribute join pg_class c on c.oid = attrelid
    where relnamespace = 'bi'::regnamespace and attname = any(${Object.keys(comments)}::text[])
  `.execute(tx);
  const textOf = new Map(views.map(({ name, text }) => [name, text]));
  const statements = rows.flatMap(({ view, column }) => {
    const text = textOf.get(view);
    const hasOwn = text === undefined || new RegExp(`^comment on column ${view}\\."?${column}"? is`, "m").test(text);
    return hasOwn ? [] : [sql`comment on column ${sql.id(...view.split("."), column)} is ${sql.lit(comments[column])}`];
  });
  if (statements.length > 0) await sql`${sql.join(statements, sql`;\n`)}`.execute(tx);
}

/**
 * Writes the lists of dimensions and metrics into the SQL of tables and views, so that none keeps one of its own.
 *
 * `{{overlapping}}`: the groupings that don't add up, as literals; `{{totals}}`: those that do, and "none", the best first.
 * `{{metric: TEXT}}`: TEXT for each metric of usage, joined by commas; `{{metric "SEPARATOR": TEXT}}` by something else. In it `$m` is
 * the metric's name, `$meaning` and the shorter `$what` say what it is, and `$unit` is what it counts.
 */
export function expandLists(text: string): string {
  return text
    .replaceAll("{{overlapping}}", literals(USAGE_DIMENSIONS.filter((one) => !addsUp(one))))
    .replaceAll("{{totals}}", literals(TOTAL_GROUPINGS))
    .replaceAll(/\{\{metric(?: "([^"]*)")?: ([\s\S]*?)\}\}/g, (_, separator: string | undefined, one: string) =>
      METRIC_TABLE.map(({ name, meaning, unit }) => {
        const [what = ""] = meaning.split(",");
        return one
          .replaceAll("$meaning", meaning)
          .replaceAll("$what", what.charAt(0).toLowerCase() + what.slice(1))
          .replaceAll("$unit", unit.charAt(0).toUpperCase() + unit.slice(1))
          .replaceAll("$m", name);
      }).join(separator?.replaceAll("\\n", "\n") ?? ", "),
    );
}

function literals(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(", ");
}

/** Each view comes after the views that its text names. */
function inDependencyOrder(views: readonly View[]): readonly View[] {
  const ordered = new Set<View>();
  const visit = (view: View, from: readonly View[]) => {
    if (from.includes(view))
      throw new Error(`views depend on each other: ${[...from, view].map(({ name }) => name).join(", ")}`);
    const named = namesIn(view.text);
    for (const other of views) if (other !== view && named.has(other.name)) visit(other, [...from, view]);
    ordered.add(view);
  };
  for (const view of views) visit(view, []);
  return [...ordered];
}

function namesIn(text: string): ReadonlySet<string> {
  // A name in a comment or a text literal is no dependency.
  const code = text.replaceAll(/--.*$|'(?:[^']|'')*'/gm, "");
  return new Set([...code.matchAll(/\b(?:bi|usage_export)\.\w+/g)].map(([name]) => name));
}

/** Creates or replaces the views whose text changed, and returns their names. */
export async function replaceViews(tx: Tx): Promise<readonly string[]> {
  const views = inDependencyOrder(readViews());
  const { rows: stored } = await STORED_VIEWS.execute(tx);
  await requireNoNewer(views, stored);
  const current = new Map(stored.filter(({ exists }) => exists).map(({ name, hash }) => [name, hash]));
  const grants: string[] = [];
  const replaced: View[] = [];
  for (const view of views) {
    if (current.get(view.name) === view.hash) continue;
    if ((await tryStatement(tx, sql.raw(view.text), COLUMNS_CHANGED)) !== undefined) {
      for (const dropped of await dropWithDependents(tx, view, views)) {
        grants.push(...dropped.grants);
        current.delete(dropped.name);
      }
      await sql.raw(view.text).execute(tx);
    }
    replaced.push(view);
  }
  for (const grant of grants) await sql.raw(grant).execute(tx);
  await commentColumns(tx, replaced);
  await storeVersions(tx, views, replaced);
  return replaced.map(({ name }) => name);
}

type Dependent = {
  /** Including its schema; of a function without its arguments. */
  readonly name: string;
  readonly described: string;
  readonly dropStatement: string;
  /** The statements that repeat the grants that roles other than its owner had on it. */
  readonly grants: readonly string[];
};

/**
 * Drops a view together with the program's own views that depend on it, and returns them. A dependent view of somebody else is an
 * error: dropping it would lose its text.
 */
async function dropWithDependents(tx: Tx, view: View, views: readonly View[]): Promise<readonly Dependent[]> {
  const dependents = await readDependents(tx, view);
  const others = dependents.filter(({ name }) => !views.some((own) => own.name === name));
  if (others.length > 0) {
    throw new AppError(
      "database",
      `${view.name} has other columns in this version, and ${others.map(({ described }) => described).join(", ")} depends on it; drop that, run migrate again, and create it anew. Nothing was changed`,
    );
  }
  // The server knows no dependencies of a function whose text it has not parsed, and views may depend on functions. Everything is
  // therefore dropped in the reverse of the order of creation.
  const lastFirst = views.flatMap((own) => dependents.filter(({ name }) => name === own.name)).reverse();
  for (const { dropStatement } of lastFirst) await sql.raw(dropStatement).execute(tx);
  return lastFirst;
}

/** The view or function itself, and the views and functions that depend on it. */
async function readDependents(tx: Tx, { name }: View): Promise<readonly Dependent[]> {
  const { rows } = await sql<Dependent>`
    with recursive dependent (class, oid) as (
      select class, oid from (values
        ('pg_class'::regclass::oid, to_regclass(${name})::oid), ('pg_proc'::regclass::oid, to_regproc(${name})::oid)
      ) as itself (class, oid)
      where oid is not null
      union
      select case when r.oid is null then d.classid else 'pg_class'::regclass::oid end, coalesce(r.ev_class, d.objid)
      from dependent on_it
      join pg_depend d on d.refclassid = on_it.class and d.refobjid = on_it.oid
      left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
      where d.classid in ('pg_rewrite'::regclass, 'pg_proc'::regclass)
    )
    select split_part(identity, '(', 1) as name, pg_describe_object(class, d.oid, 0) as described,
      format('drop %s %s', type, identity) as "dropStatement",
      array(
        select format('grant %s on %s %s to %s %s', privilege_type, case type when 'function' then 'function' end, identity,
          case grantee when 0 then 'public' else quote_ident(pg_get_userbyid(grantee)) end,
          case when is_grantable then 'with grant option' end)
        from aclexplode(coalesce(relacl, proacl)) where grantee <> coalesce(relowner, proowner)
      ) as grants
    from dependent d
    cross join lateral pg_identify_object(class, d.oid, 0)
    left join pg_class c on class = 'pg_class'::regclass and c.oid = d.oid
    left join pg_proc p on class = 'pg_proc'::regclass and p.oid = d.oid
  `.execute(tx);
  return rows;
}

async function storeVersions(tx: Tx, views: readonly View[], replaced: readonly View[]): Promise<void> {
  await sql`
    insert into usage_export.view_version (name, hash, program_version)
    select name, hash, ${await programVersion()}
    from unnest(${replaced.map(({ name }) => name)}::text[], ${replaced.map(({ hash }) => hash)}::text[]) as view (name, hash)
    on conflict (name) do update
    set hash = excluded.hash, program_version = excluded.program_version, created_at = excluded.created_at
  `.execute(tx);
  await sql`
    delete from usage_export.view_version where not name = any(${views.map(({ name }) => name)}::text[])
  `.execute(tx);
}

/** Throws if the views of the database are not those of this program. The database must have all migrations. */
export async function requireCurrentViews(stored: readonly StoredView[]): Promise<void> {
  const views = readViews();
  const [other] = differingNames(views, stored);
  if (other === undefined) return;
  await requireNoNewer(views, stored);
  throw olderVersion(` (${other} is of another version)`);
}

async function requireNoNewer(views: readonly View[], stored: readonly StoredView[]): Promise<void> {
  const version = await programVersion();
  const other = differingNames(views, stored);
  const newer = stored.find((one) => other.includes(one.name) && isNewer(one.programVersion, version));
  if (newer) {
    throw newerVersion(`its ${newer.name} is of ${newer.programVersion}, this is ${version}`);
  }
}

export function newerVersion(what: string): AppError {
  return new AppError(
    "database",
    `the database was migrated by a newer version (${what}); run that version of usage-export`,
    { details: { schema: "newer" } },
  );
}

export function olderVersion(why = ""): AppError {
  const message = `the database is not up to date${why}; run: usage-export migrate`;
  return new AppError("database", message, { details: { schema: "older" } });
}

/** Whether the database was reached, and has the schema of another version. */
export function isSchemaError(error: AppError): boolean {
  return error.details.schema !== undefined;
}

/** The names that only one side has, or whose text differs. */
function differingNames(views: readonly View[], stored: readonly StoredView[]): readonly string[] {
  const ours = new Map(views.map(({ name, hash }) => [name, hash]));
  const theirs = new Map(stored.map(({ name, hash }) => [name, hash]));
  return [...new Set([...ours.keys(), ...theirs.keys()])].filter((name) => ours.get(name) !== theirs.get(name));
}

export const STORED_VIEWS = sql<StoredView>`
  select name, hash, program_version as "programVersion",
    coalesce(to_regclass(name)::oid, to_regproc(name)::oid) is not null as "exists"
  from usage_export.view_version
`;

/** Compares versions such as 0.10.1 and 1.0.0-rc.2, which comes before 1.0.0. */
function isNewer(version: string, than: string): boolean {
  const [one, other] = [version, than].map((text) => (text.includes("-") ? text : `${text}-zz`));
  return (one ?? "").localeCompare(other ?? "", "en", { numeric: true }) > 0;
}
