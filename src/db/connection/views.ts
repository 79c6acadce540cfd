// Recreates the views and functions of migrations/views whose text changed, and checks whether a database has those of this
// program.

import { createHash } from "node:crypto";
import fs from "node:fs/promises";
import path from "node:path";
import { type RawBuilder, sql } from "kysely";
import { AppError } from "../../errors.ts";
import { MIGRATIONS_FOLDER, programVersion } from "../../package-files.ts";
import type { Database } from "./database.ts";
import type { Tx } from "./transaction.ts";

const VIEWS_FOLDER = path.join(MIGRATIONS_FOLDER, "views");

/** A view or a function, and the text that creates it with its comments. */
type View = {
  /** Including its schema. */
  readonly name: string;
  readonly kind: "view" | "function";
  readonly text: string;
  readonly hash: string;
};

type StoredView = { readonly name: string; readonly hash: string; readonly programVersion: string };

/** SQLSTATE of a replacement that changes columns: a view or function can be replaced only with the same columns, and more at the end. */
const COLUMNS_CHANGED = new Set(["42P16", "42P13"]);

/** In an order in which each comes after those that its text names. */
async function readViews(): Promise<readonly View[]> {
  const files = (await fs.readdir(VIEWS_FOLDER)).filter((file) => file.endsWith(".sql")).sort();
  const views = await Promise.all(
    files.map(async (file) => parseView(file, await fs.readFile(path.join(VIEWS_FOLDER, file), "utf8"))),
  );
  return inDependencyOrder(views);
}

function parseView(file: string, text: string): View {
  const [, kind, name] = /^create or replace (view|function) ((?:bi|usage_export)\.\w+)/m.exec(text) ?? [];
  if ((kind !== "view" && kind !== "function") || name?.split(".")[1] !== path.basename(file, ".sql")) {
    throw new Error(
      `migrations/views/${file}: expected "create or replace view" or "function" and the name of the file`,
    );
  }
  const hash = createHash("sha256").update(text.replaceAll("\r\n", "\n")).digest("hex");
  return { name, kind, text, hash };
}

function inDependencyOrder(views: readonly View[]): readonly View[] {
  const ordered = new Set<View>();
  const visit = (view: View, from: readonly View[]) => {
    if (from.includes(view))
      throw new Error(`views need each other: ${[...from, view].map(({ name }) => name).join(", ")}`);
    const named = namesIn(view.text);
    for (const other of views) if (other !== view && named.has(other.name)) visit(other, [...from, view]);
    ordered.add(view);
  };
  for (const view of views) visit(view, []);
  return [...ordered];
}

function namesIn(text: string): ReadonlySet<string> {
  // A name in a comment or a text literal is not needed to create the view.
  const code = text.replaceAll(/--.*$|'(?:[^']|'')*'/gm, "");
  return new Set([...code.matchAll(/\b(?:bi|usage_export)\.\w+/g)].map(([name]) => name));
}

/** Returns the names of what was created or replaced. */
export async function replaceViews(tx: Tx): Promise<readonly string[]> {
  const views = await readViews();
  const stored = await storedViews(tx);
  await requireNoNewer(views, stored);
  const unchanged = new Set(stored.map(({ name, hash }) => `${name} ${hash}`));
  const there = await existingViews(tx, views);
  const grants = new Map<string, readonly RawBuilder<unknown>[]>();
  const replaced: View[] = [];
  for (const view of views) {
    if (there.has(view.name) && unchanged.has(`${view.name} ${view.hash}`)) continue;
    if (!(await isReplaced(tx, view))) {
      for (const [name, statements] of await dropWithDependents(tx, view, views)) {
        grants.set(name, statements);
        there.delete(name);
      }
      await sql.raw(view.text).execute(tx);
    }
    for (const grant of grants.get(view.name) ?? []) await grant.execute(tx);
    replaced.push(view);
  }
  await storeVersions(tx, views, replaced);
  return replaced.map(({ name }) => name);
}

/** False if its columns changed, so that it has to be dropped first. */
async function isReplaced(tx: Tx, view: View): Promise<boolean> {
  await sql`savepoint replace_view`.execute(tx);
  try {
    await sql.raw(view.text).execute(tx);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && COLUMNS_CHANGED.has(String(error.code)))) throw error;
    await sql`rollback to savepoint replace_view`.execute(tx);
    return false;
  }
  await sql`release savepoint replace_view`.execute(tx);
  return true;
}

type Dependent = { readonly name: string; readonly described: string };

/**
 * Drops a view together with the program's own views that depend on it. Returns, by name, the statements that repeat the grants
 * others had on them. A dependent view of somebody else is an error: dropping it would lose its text.
 */
async function dropWithDependents(
  tx: Tx,
  view: View,
  views: readonly View[],
): Promise<ReadonlyMap<string, readonly RawBuilder<unknown>[]>> {
  const { rows: dependents } = await sql<Dependent>`
    with recursive dependent (class, oid) as (
      ${oidOf(view)}
      union
      select case when r.oid is null then d.classid else 'pg_class'::regclass::oid end, coalesce(r.ev_class, d.objid)
      from dependent on_it
      join pg_depend d on d.refclassid = on_it.class and d.refobjid = on_it.oid
      left join pg_rewrite r on d.classid = 'pg_rewrite'::regclass and r.oid = d.objid
      where d.classid in ('pg_rewrite'::regclass, 'pg_proc'::regclass)
    )
    select pg_describe_object(class, dependent.oid, 0) as described,
      coalesce(cn.nspname || '.' || c.relname, pn.nspname || '.' || p.proname) as name
    from dependent
    left join pg_class c on class = 'pg_class'::regclass and c.oid = dependent.oid
    left join pg_namespace cn on cn.oid = c.relnamespace
    left join pg_proc p on class = 'pg_proc'::regclass and p.oid = dependent.oid
    left join pg_namespace pn on pn.oid = p.pronamespace
  `.execute(tx);
  const ours = views.filter(({ name }) => dependents.some((dependent) => dependent.name === name));
  const others = dependents.filter(({ name }) => !ours.some((one) => one.name === name));
  if (others.length > 0) {
    throw new AppError(
      "database",
      `${view.name} has other columns in this version, and ${others.map(({ described }) => described).join(", ")} depends on it; drop that, run migrate again, and create it anew. Nothing was changed`,
    );
  }
  const grants = new Map<string, readonly RawBuilder<unknown>[]>();
  for (const one of ours) grants.set(one.name, await grantsOn(tx, one));
  // The server knows no dependencies of a function whose text it has not parsed, and views may depend on functions. Everything is
  // therefore dropped in the reverse of the order of creation.
  for (const one of ours.toReversed()) await sql`drop ${sql.raw(one.kind)} ${sql.table(one.name)}`.execute(tx);
  return grants;
}

function oidOf({ name, kind }: View): RawBuilder<unknown> {
  const [schema, own] = name.split(".");
  return kind === "view"
    ? sql`select 'pg_class'::regclass::oid, c.oid from pg_class c where c.relnamespace = to_regnamespace(${schema}) and relname = ${own}`
    : sql`select 'pg_proc'::regclass::oid, p.oid from pg_proc p where p.pronamespace = to_regnamespace(${schema}) and proname = ${own}`;
}

async function grantsOn(tx: Tx, view: View): Promise<readonly RawBuilder<unknown>[]> {
  const { rows } = await sql<{ privilege: string; grantee: string | null; grantable: boolean }>`
    select privilege_type as privilege, is_grantable as grantable,
      case when grantee <> 0 then pg_get_userbyid(grantee) end as grantee
    from (${oidOf(view)}) as it (class, oid)
    left join pg_class c on class = 'pg_class'::regclass and c.oid = it.oid
    left join pg_proc p on class = 'pg_proc'::regclass and p.oid = it.oid
    cross join lateral aclexplode(coalesce(relacl, proacl))
    where grantee <> coalesce(relowner, proowner)
  `.execute(tx);
  return rows.map(({ privilege, grantee, grantable }) => {
    const to = grantee === null ? sql`public` : sql.id(grantee);
    const on = sql`${sql.raw(view.kind === "view" ? "" : "function")} ${sql.table(view.name)}`;
    return sql`grant ${sql.raw(privilege)} on ${on} to ${to} ${sql.raw(grantable ? "with grant option" : "")}`;
  });
}

async function existingViews(tx: Tx, views: readonly View[]): Promise<Set<string>> {
  const { rows } = await sql<{ name: string }>`
    select n.nspname || '.' || relname as name from pg_class c join pg_namespace n on n.oid = relnamespace
    where relkind = 'v' and nspname in ('bi', 'usage_export')
    union all
    select n.nspname || '.' || proname from pg_proc join pg_namespace n on n.oid = pronamespace
    where nspname in ('bi', 'usage_export')
  `.execute(tx);
  return new Set(rows.map(({ name }) => name).filter((name) => views.some((view) => view.name === name)));
}

async function storeVersions(tx: Tx, views: readonly View[], replaced: readonly View[]): Promise<void> {
  const version = await programVersion();
  for (const { name, hash } of replaced) {
    await sql`
      insert into usage_export.view_version (name, hash, program_version) values (${name}, ${hash}, ${version})
      on conflict (name) do update
      set hash = excluded.hash, program_version = excluded.program_version, created_at = excluded.created_at
    `.execute(tx);
  }
  const names = views.map(({ name }) => name);
  await sql`delete from usage_export.view_version where not name = any(${names})`.execute(tx);
}

/** Throws if the views of the database, which has all migrations, are not those of this program. */
export async function requireCurrentViews(db: Database): Promise<void> {
  const [views, stored] = [await readViews(), await storedViews(db)];
  await requireNoNewer(views, stored);
  const [other] = differingNames(views, stored);
  if (other !== undefined) {
    throw new AppError(
      "database",
      `the database is not up to date (${other} is of another version); run: usage-export migrate`,
    );
  }
}

async function requireNoNewer(views: readonly View[], stored: readonly StoredView[]): Promise<void> {
  const version = await programVersion();
  const other = differingNames(views, stored);
  const newer = stored.find((one) => other.includes(one.name) && isNewer(one.programVersion, version));
  if (newer) {
    throw new AppError(
      "database",
      `the database was migrated by a newer version (its ${newer.name} is of ${newer.programVersion}, this is ${version}); run that version of usage-export`,
    );
  }
}

/** The names that only one side has, or that have another text there. */
function differingNames(views: readonly View[], stored: readonly StoredView[]): readonly string[] {
  const ours = new Map(views.map(({ name, hash }) => [name, hash]));
  const theirs = new Map(stored.map(({ name, hash }) => [name, hash]));
  return [...new Set([...ours.keys(), ...theirs.keys()])].filter((name) => ours.get(name) !== theirs.get(name));
}

async function storedViews(db: Database): Promise<readonly StoredView[]> {
  const { rows } = await sql<StoredView>`
    select name, hash, program_version as "programVersion" from usage_export.view_version
  `.execute(db);
  return rows;
}

/** Compares versions such as 0.10.1. */
function isNewer(version: string, than: string): boolean {
  return version.localeCompare(than, "en", { numeric: true }) > 0;
}
