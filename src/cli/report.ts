// The command `report`: reads the usage of a period and writes it as one HTML file.

import type { App } from "../app.ts";
import type { Database } from "../db/connection/database.ts";
import { AppError } from "../errors.ts";
import { readReportData } from "../facts/overview.ts";
import { InvalidQuestion } from "../facts/question.ts";
import { withDatabase } from "../open-database.ts";
import { leadSentences } from "../show/sentences.ts";
import { dayOf } from "../usage/days.ts";
import { scriptPage } from "../web/assets.ts";
import { checkOutputPath, writeFileAtomically } from "./output.ts";
import { choosePeriod, type PeriodOptions } from "./selection.ts";

/** `out` is a file, or "-" for standard output. */
type ReportOptions = PeriodOptions & { readonly out: string; readonly project?: string };

/** A year with many groups takes long, and a person waits for it. */
export const STATEMENT_SECONDS_MAX = 120;

/** Exits with 0 even if days are missing, unlike `status`: the report mentions them. */
export async function runReport(app: App, options: ReportOptions): Promise<number> {
  const { out, project } = options;
  const period = choosePeriod(options, dayOf(new Date()));
  if (out !== "-") await checkOutputPath(out);
  const { data, page } = await withDatabase(app, (db) => readReport(app, db, { period, project }));
  if (out === "-") {
    app.write(page);
    return 0;
  }
  await writeFileAtomically(out, [page], app.signal);
  const { overview, budgets } = data;
  const { start, end } = overview.period;
  app.write(`${out}: usage from ${start} to ${end}. ${leadSentences(overview, budgets, undefined).join(" ")}\n`);
  return 0;
}

/** The page is scrubbed of secrets, because it contains names and comments that come from the service. */
export async function readReport(app: App, db: Database, asked: Parameters<typeof readReportData>[1]) {
  const now = new Date();
  const data = await withOptionInError(readReportData(db, asked, now, { secondsMax: STATEMENT_SECONDS_MAX }));
  const { renderReport } = await import("../web/dashboard/pages.ts");
  return { data, page: app.scrubber.scrub(renderReport(data, now, (await scriptPage()).body)) };
}

/** The message of an `InvalidQuestion` begins with the name of a parameter, which is the name of an option here. */
export async function withOptionInError<T>(reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof InvalidQuestion) throw new AppError("config", `--${error.message}`);
    throw error;
  }
}
