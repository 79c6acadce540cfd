// The command `report`: reads the usage of a period and writes it as one HTML file.

import { type App, withDatabase } from "../app.ts";
import { type Database, databaseNow } from "../db/connection/database.ts";
import { readReportData } from "../db/report/report.ts";
import { counted } from "../report/format.ts";
import type { ReportData } from "../report/report-data.ts";
import { dayOf } from "../usage/days.ts";
import { checkOutputPath, writeFileAtomically } from "./output.ts";
import { choosePeriod, type PeriodOptions } from "./selection.ts";

export type ReportOptions = PeriodOptions & {
  /** "-" is standard output. */
  readonly out: string;
};

/** A year with many groups takes long, and a person waits for it. */
const STATEMENT_SECONDS_MAX = 120;

/** Exit status 0 also if days are missing: the report says so, and the exit status of `status` does. */
export async function runReport(app: App, options: ReportOptions): Promise<number> {
  const { out } = options;
  // By this machine's clock, so that a mistake is reported before the database is opened.
  choosePeriod(options, dayOf(new Date()));
  if (out !== "-") await checkOutputPath(out, "--out");
  const { data, page } = await withDatabase(app, (db) => readReport(app, db, options));
  if (out === "-") {
    app.write(page);
    return 0;
  }
  await writeFileAtomically(out, [page], app.signal);
  app.write(`${out}: usage from ${data.period.start} to ${data.period.end}. ${coverageText(data)}\n`);
  return 0;
}

/** The page is scrubbed of secrets, because it contains error texts of the service and the database. */
export async function readReport(
  app: App,
  db: Database,
  options: PeriodOptions,
): Promise<{ readonly data: ReportData; readonly page: string }> {
  const now = await databaseNow(db);
  const data = await readReportData(db, choosePeriod(options, dayOf(now)), now, {
    statementSecondsMax: STATEMENT_SECONDS_MAX,
  });
  // Loading the chart library takes half a second, which a mistake in an option need not wait for.
  const { renderReport } = await import("../report/report.ts");
  return { data, page: app.scrubber.scrub(renderReport(data)) };
}

/** Whether the numbers can be relied on, in a sentence. */
function coverageText({ coverage, totals }: ReportData): string {
  const { complete, ...lacking } = coverage.counts;
  const slices = Object.values(coverage.counts).reduce((sum, count) => sum + count, 0);
  if (slices === 0) return "Nothing was due or read in this period.";
  const absent = Object.entries(lacking).flatMap(([status, count]) => (count > 0 ? `${count} ${status}` : []));
  if (absent.length > 0) return `Of ${slices} slices ${absent.join(", ")}: the report says which.`;
  const undue = totals.unreadDays > 0 ? `, and ${counted(totals.unreadDays, "day")} of the total not due` : "";
  const open =
    totals.incompleteDays > 0 ? `, ${counted(totals.incompleteDays, "day")} of the total not over when read` : "";
  return `Nothing that was due is missing${open}${undue}.`;
}
