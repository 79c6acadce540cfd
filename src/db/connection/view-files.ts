// Reads the SQL that creates the views and functions from migrations/views.

import { hash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { MIGRATIONS_FOLDER } from "../../package-files.ts";
import { addsUp, memberNoun, TOTAL_GROUPINGS, USAGE_DIMENSIONS } from "../../usage/dimensions.ts";
import { METRIC_TABLE } from "../../usage/metrics.ts";

const VIEWS_FOLDER = path.join(MIGRATIONS_FOLDER, "views");

/** A view or a function. The name includes the schema. */
export type ViewText = { readonly name: string; readonly text: string };

/** Small files are read faster synchronously than with a promise for each. */
export function readViews(): readonly ViewText[] {
  return fs
    .readdirSync(VIEWS_FOLDER)
    .filter((file) => file.endsWith(".sql"))
    .flatMap((file) => forEachDimension(file, fs.readFileSync(path.join(VIEWS_FOLDER, file), "utf8")))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([file, text]) => parseView(file, text));
}

/** The hash of all texts and of the comments on columns: a database with another hash needs its views replaced. */
export function viewsHash(views: readonly ViewText[]): string {
  const texts = `${views.map(({ text }) => text).join("\n")}${JSON.stringify(columnComments())}`;
  return hash("sha256", texts.replaceAll("\r\n", "\n"));
}

/** A file with DIMENSION in its name becomes one for each dimension of usage; with MEMBER, for each dimension whose groups may be sets. */
function forEachDimension(file: string, text: string): readonly (readonly [file: string, text: string])[] {
  if (!/DIMENSION|MEMBER/.test(file)) return [[file, text]];
  return USAGE_DIMENSIONS.flatMap((one) => {
    const member = memberNoun(one);
    if (file.includes("MEMBER") && member === undefined) return [];
    const fill = (template: string) => template.replaceAll("DIMENSION", one).replaceAll("MEMBER", member ?? "");
    return [[fill(file), fill(text)] as const];
  });
}

function parseView(file: string, written: string): ViewText {
  const [, name] = /^create or replace (?:view|function) ((?:bi|usage_export)\.\w+)/m.exec(written) ?? [];
  if (name?.split(".")[1] !== path.basename(file, ".sql")) {
    throw new Error(`migrations/views/${file}: expected "create or replace view" or "function" with the file's name`);
  }
  return { name, text: fillPlaceholders(written) };
}

/** Comments on columns, by name. Used for a column that has no comment in the view's own file. */
export function columnComments(): Readonly<Record<string, string>> {
  const written = JSON.parse(fs.readFileSync(path.join(MIGRATIONS_FOLDER, "columns.json"), "utf8"));
  const metrics = METRIC_TABLE.map(({ name, meaning }) => [name, `${meaning}; NULL where the service sent none`]);
  return { ...written, ...Object.fromEntries(metrics) };
}

/**
 * Writes the lists of dimensions and metrics into the SQL of tables and views, so that no SQL repeats them.
 * - `{{overlapping}}`: the groupings that don't add up, as literals
 * - `{{totals}}`: "none" and the groupings that add up, in the order of preference
 * - `{{metric: TEXT}}`: TEXT for each metric of usage, joined by commas, or by the separator in `{{metric "SEPARATOR": TEXT}}`. In TEXT,
 *   `$m` is the metric's name, `$meaning` and the shorter `$what` say what it is, and `$unit` is what it counts.
 */
export function fillPlaceholders(text: string): string {
  return text
    .replaceAll("{{overlapping}}", literals(USAGE_DIMENSIONS.filter((one) => !addsUp(one))))
    .replaceAll("{{totals}}", literals(TOTAL_GROUPINGS))
    .replaceAll(/\{\{metric(?: "([^"]*)")?: ([\s\S]*?)\}\}/g, (_, separator: string | undefined, template: string) =>
      METRIC_TABLE.map(({ name, meaning, unit }) => {
        const [what = ""] = meaning.split(",");
        return template
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
