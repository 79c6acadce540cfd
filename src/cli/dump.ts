// The command `dump`: writes a view of schema bi to a file or to standard output.

import path from "node:path";
import { type App, withDatabase } from "../app.ts";
import { didYouMean } from "../config/suggestions.ts";
import { type DayRange, hasDayColumn, listDumpViews, readDumpRows, withDumpTransaction } from "../db/dump.ts";
import { ENCODERS } from "../dump/encode.ts";
import { DUMP_FORMATS, type DumpFormat, type View } from "../dump/view.ts";
import { AppError } from "../errors.ts";
import { checkOutputPath, writeFileAtomically, writeStandardOutput } from "./output.ts";

export type DumpOptions = DayRange & {
  readonly view: string;
  /** Left out: the ending of `out` decides. */
  readonly format?: DumpFormat;
  /** "-" is standard output. */
  readonly out: string;
};

export async function runDump(app: App, options: DumpOptions): Promise<number> {
  const { view: name, from, to, out } = options;
  const format = options.format ?? formatOfFile(out);
  if (from !== undefined && to !== undefined && from > to) {
    throw new AppError("config", `--from: expected ${to}, which is --to, or a day before it; got ${from}`);
  }
  if (out !== "-") {
    await checkOutputPath(out, "--out");
  } else if (format === "parquet" && process.stdout.isTTY) {
    throw new AppError("config", "--format: parquet is no text for a terminal; add --out FILE");
  }
  await withDatabase(app, (db) =>
    withDumpTransaction(db, app.signal, async (tx) => {
      const view = chooseView(await listDumpViews(tx), name, options);
      let rowCount = 0;
      async function* countedRows() {
        for await (const rows of readDumpRows(tx, view, { from, to })) {
          rowCount += rows.length;
          yield rows;
        }
      }
      const pieces = ENCODERS[format](view, countedRows());
      if (out === "-") return writeStandardOutput(pieces, app.signal);
      await writeFileAtomically(out, pieces, app.signal);
      app.write(`${rowCount} rows of bi.${name} written to ${out}\n`);
    }),
  );
  return 0;
}

function formatOfFile(out: string): DumpFormat {
  const ending = path.extname(out).slice(1).toLowerCase();
  const format = DUMP_FORMATS.find((one) => one === ending);
  if (format) return format;
  const endings = DUMP_FORMATS.map((one) => `.${one}`).join(", ");
  const got = out === "-" ? "" : `; got ${JSON.stringify(out)}`;
  throw new AppError(
    "config",
    `--format: expected one of ${DUMP_FORMATS.join(", ")}, or --out with a file that ends in ${endings}${got}`,
  );
}

function chooseView(views: readonly View[], name: string, { from, to }: DayRange): View {
  const names = views.map((view) => view.name);
  const view = views.find((one) => one.name === name);
  if (!view) {
    const guess = didYouMean(name, names);
    throw new AppError(
      "config",
      `--view: schema bi has no view ${JSON.stringify(name)}${guess || `; there is ${names.join(", ")}`}`,
    );
  }
  if ((from !== undefined || to !== undefined) && !hasDayColumn(view)) {
    throw new AppError("config", `--from, --to: the rows of bi.${name} have no day to choose them by; leave them out`);
  }
  return view;
}
