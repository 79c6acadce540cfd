// The command `dump`: writes a view of schema bi to a file or to standard output.

import path from "node:path";
import type { App } from "../app.ts";
import { didYouMean } from "../config/messages.ts";
import { withDatabase } from "../database.ts";
import { readSnapshot, type Tx } from "../db/connection/transaction.ts";
import { type DayRange, listViews, readViewRows, type View } from "../db/dump.ts";
import { AppError } from "../errors.ts";
import { csvHeader, csvLine } from "../show/csv.ts";
import { checkOutputPath, writeFileAtomically, writeStandardOutput } from "./output.ts";

/** `format` left out: the ending of `out` decides. `out` "-" is standard output. */
export type DumpOptions = DayRange & { readonly view: string; readonly format?: string; readonly out: string };

export async function runDump(app: App, options: DumpOptions): Promise<number> {
  const { view: name, from, to, out } = options;
  const format = options.format ?? path.extname(out).slice(1).toLowerCase();
  if (format !== "csv" && format !== "jsonl") {
    const expected = "expected csv or jsonl, or --out with a file that ends in .csv or .jsonl";
    throw new AppError("config", `--format: ${expected}${out === "-" ? "" : `; got ${JSON.stringify(out)}`}`);
  }
  if (from !== undefined && to !== undefined && from > to) {
    throw new AppError("config", `--from: expected ${to}, which is --to, or a day before it; got ${from}`);
  }
  if (out !== "-") await checkOutputPath(out, "--out");
  let rowCount = 0;
  const dump = async (tx: Tx) => {
    const view = chooseView(await listViews(tx), name, options);
    const pieces = async function* () {
      if (format === "csv") yield csvHeader(view.columns);
      for await (const rows of readViewRows(tx, view, options)) {
        rowCount += rows.length;
        yield rows.map((row) => (format === "csv" ? csvOf(view, row) : jsonOf(view, row))).join("");
      }
    };
    await (out === "-" ? writeStandardOutput(pieces(), app.signal) : writeFileAtomically(out, pieces(), app.signal));
  };
  await withDatabase(app, (db) => readSnapshot(db, dump, 10 * 60));
  if (out !== "-") app.write(`${rowCount} rows of bi.${name} written to ${out}\n`);
  return 0;
}

function chooseView(views: readonly View[], name: string, { from, to }: DayRange): View {
  const view = views.find((one) => one.name === name);
  const names = views.map((one) => one.name);
  if (!view) {
    const hint = didYouMean(name, names) || `; there is ${names.join(", ")}`;
    throw new AppError("config", `--view: schema bi has no view ${JSON.stringify(name)}${hint}`);
  }
  if ((from ?? to) !== undefined && !view.days) {
    throw new AppError("config", `--from, --to: the rows of bi.${name} have no day to choose them by; leave them out`);
  }
  return view;
}

function csvOf({ columns }: View, row: readonly (string | null)[]): string {
  const texts = row.map((json) => (json?.startsWith('"') ? String(JSON.parse(json)) : json));
  return csvLine(columns, texts);
}

function jsonOf({ columns }: View, row: readonly (string | null)[]): string {
  return `{${columns.map(({ name }, at) => `${JSON.stringify(name)}:${row[at]}`).join(",")}}\n`;
}
