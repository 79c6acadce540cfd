// The command `dump`: writes a view of schema bi to a file or to standard output.

import path from "node:path";
import type { App } from "../app.ts";
import { didYouMean } from "../config/messages.ts";
import { readAtOneMoment, type Tx } from "../db/connection/transaction.ts";
import {
  CHANGED_DAYS_VIEW,
  type DayChoice,
  type DumpedView,
  isCoveredByChangedDays,
  listViews,
  readChangedDays,
  readViewRows,
} from "../db/dump.ts";
import { AppError } from "../errors.ts";
import { withDatabase } from "../open-database.ts";
import { csvHeader, csvLine } from "../show/csv.ts";
import { counted } from "../show/format.ts";
import { checkOutputPath, writeFileAtomically, writeStandardOutput } from "./output.ts";

/** A view may have years of rows. */
const STATEMENT_SECONDS_MAX = 10 * 60;

/** Without `format`, the ending of `out` decides. If `out` is "-", the view goes to standard output. */
type DumpOptions = DayChoice & { readonly view: string; readonly format?: string | undefined; readonly out: string };

export async function runDump(app: App, options: DumpOptions): Promise<number> {
  const { from, to, out } = options;
  const format = options.format ?? path.extname(out).slice(1).toLowerCase();
  if (format !== "csv" && format !== "jsonl") {
    const expected = "expected csv or jsonl, or --out with a file that ends in .csv or .jsonl";
    throw new AppError("config", `--format: ${expected}${out === "-" ? "" : `; got ${JSON.stringify(out)}`}`);
  }
  if (from !== undefined && to !== undefined && from > to) {
    throw new AppError("config", `--from: expected a day up to --to (${to}); got ${from}`);
  }
  const changedSince = options.changedSince === undefined ? undefined : parseMoment(options.changedSince);
  if (changedSince !== undefined && out === "-") {
    const reason = "a second file beside it lists the days to replace in your copy";
    throw new AppError("config", `--changed-since: expected --out with a file, because ${reason}`);
  }
  if (out !== "-") await checkOutputPath(out);
  const output = { app, format };
  const writeView = async (tx: Tx) => {
    const view = chooseView(await listViews(tx), options);
    const nextSteps = changedSince === undefined ? "" : await writeChangedDays(tx, output, view, changedSince, out);
    const count = await writeRows(output, out, view, readViewRows(tx, view, { from, to, changedSince }));
    if (out !== "-") app.write(`${counted(count, "row")} of bi.${view.name} written to ${out}\n${nextSteps}`);
  };
  await withDatabase(app, (db) => readAtOneMoment(db, writeView, STATEMENT_SECONDS_MAX));
  return 0;
}

/** Each value is JSON text, or null for SQL NULL. */
type Row = readonly (string | null)[];

type Output = { readonly app: App; readonly format: string };

async function writeRows({ app, format }: Output, out: string, view: DumpedView, rows: AsyncIterable<readonly Row[]>) {
  let count = 0;
  const pieces = async function* () {
    if (format === "csv") yield csvHeader(view.columns);
    for await (const batch of rows) {
      count += batch.length;
      yield batch.map((row) => lineOf(format, view, row)).join("");
    }
  };
  await (out === "-" ? writeStandardOutput(pieces(), app.signal) : writeFileAtomically(out, pieces(), app.signal));
  return count;
}

/** Writes the changed days to a file beside `out`. Returns instructions for the user. */
async function writeChangedDays(tx: Tx, output: Output, view: DumpedView, changedSince: string, out: string) {
  const { dir, name, ext } = path.parse(out);
  const file = path.join(dir, `${name}.days${ext}`);
  let next: string = changedSince;
  const days = async function* () {
    for await (const rows of readChangedDays(tx, view, changedSince)) {
      // The last column, the same in all rows, is the `changedSince` of the next dump.
      next = JSON.parse(rows[0]?.at(-1) ?? "null") ?? next;
      yield rows;
    }
  };
  const count = await writeRows(output, file, CHANGED_DAYS_VIEW, days());
  return `${counted(count, "day")} written to ${file}: delete them from your copy before you insert the rows\nnext time: --changed-since ${next === BEGINNING ? "beginning" : next}\n`;
}

/** In Postgres, a timestamp earlier than all others. */
const BEGINNING = "-infinity";

/** A moment as ISO 8601 with its zone, or "beginning"; returned as Postgres reads it. */
function parseMoment(text: string): string {
  if (text === "beginning") return BEGINNING;
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text))) {
    return text;
  }
  const expected = "expected beginning or a moment such as 2026-11-22T02:15:00Z";
  throw new AppError("config", `--changed-since: ${expected}; got ${JSON.stringify(text)}`);
}

function chooseView(views: readonly DumpedView[], { view: name, from, to, changedSince }: DumpOptions): DumpedView {
  const view = views.find((one) => one.name === name);
  if (!view) {
    const names = views.map((one) => one.name);
    const hint = didYouMean(name, names) || `; it has ${names.join(", ")}`;
    throw new AppError("config", `--view: schema bi has no view ${JSON.stringify(name)}${hint}`);
  }
  if ((from ?? to) !== undefined && !view.dayColumn) {
    throw new AppError("config", `--from, --to: bi.${name} has no column with a day; leave these options out`);
  }
  if (changedSince !== undefined && !isCoveredByChangedDays(view)) {
    const names = views.filter(isCoveredByChangedDays).map((one) => one.name);
    throw new AppError("config", `--changed-since: expected one of the views ${names.join(", ")}; got ${name}`);
  }
  return view;
}

function lineOf(format: string, { columns }: DumpedView, row: Row): string {
  if (format === "jsonl") return `{${columns.map(({ name }, i) => `${JSON.stringify(name)}:${row[i]}`).join(",")}}\n`;
  const texts = row.map((json) => (json?.startsWith('"') ? String(JSON.parse(json)) : json));
  return csvLine(columns, texts);
}
