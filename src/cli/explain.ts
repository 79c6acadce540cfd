// The command `explain`: why usage rose or fell, in plain words and as tables that add up.

import { type App, withDatabase } from "../app.ts";
import { databaseNow } from "../db/connection/database.ts";
import { readSnapshot } from "../db/connection/transaction.ts";
import { readUsageChange, storedProjects } from "../db/report/usage-change.ts";
import { AppError } from "../errors.ts";
import { counted, exactText, metricName, windowText } from "../report/format.ts";
import { displayWidth, truncatedName } from "../report/html.ts";
import {
  type ChangeBreakdown,
  type ChangePart,
  changeSentences,
  groupingWord,
  type MetricChange,
  type Sentence,
  type UsageChange,
} from "../report/usage-change.ts";
import { addDays, type Day, dayCount, dayOf, type Window } from "../usage/days.ts";
import type { UsageGrouping } from "../usage/series.ts";
import { writeAnswer } from "./output.ts";
import { choosePeriod, notBegun, requireKnown } from "./selection.ts";

export type ExplainOptions = {
  readonly day?: Day;
  readonly from?: Day;
  readonly to?: Day;
  readonly project?: readonly string[];
  readonly metric: readonly string[];
  readonly grouping?: readonly UsageGrouping[];
  /** How many groups each table shows. */
  readonly limit: number;
  readonly json?: boolean;
};

/** A year with many groups takes long, and a person waits for it. */
const STATEMENT_SECONDS_MAX = 120;

/** Exit status 0 also if days are missing: the answer says so, and the exit status of `status` does. */
export async function runExplain(app: App, options: ExplainOptions): Promise<number> {
  // By this machine's clock, so that a mistake is reported before the database is opened.
  explainedPeriod(options, dayOf(new Date()));
  const change = await withDatabase(app, async (db) => {
    const period = explainedPeriod(options, dayOf(await databaseNow(db)));
    return readSnapshot(
      db,
      async (tx) => {
        const fault = (name: string) => `the database has no usage of ${name}`;
        requireKnown("--project", options.project, await storedProjects(tx), fault);
        return readUsageChange(tx, {
          period,
          before: { start: addDays(period.start, -dayCount(period)), end: addDays(period.start, -1) },
          projects: options.project,
          metrics: [...new Set(options.metric)],
          groupings: options.grouping,
          groupsMax: options.limit,
        });
      },
      STATEMENT_SECONDS_MAX,
    );
  });
  writeAnswer(app, options, options.json ? changeJson(change) : change, () => renderChange(change));
  return 0;
}

const DAYS_DEFAULT = 7;

function explainedPeriod({ day, from, to }: ExplainOptions, today: Day): Window {
  if (day !== undefined && (from !== undefined || to !== undefined))
    throw new AppError("config", "--day: expected without --from and --to, which name the days as well");
  if (day !== undefined) {
    if (day <= today) return { start: day, end: day };
    throw notBegun(day, today);
  }
  const end = to ?? addDays(today, -1);
  return choosePeriod({ from: from ?? addDays(end, 1 - DAYS_DEFAULT), to: end }, today);
}

/** Scripts read these fields. Amounts are text, as no double holds them exactly. */
function changeJson(change: UsageChange) {
  return {
    ...change,
    metrics: change.metrics.map((metric) => ({
      ...metric,
      sentences: changeSentences(change, metric).map(sentenceText),
    })),
  };
}

function renderChange(change: UsageChange): string {
  const { period, before, metrics } = change;
  if (metrics.length === 0) {
    return `No usage of this kind is stored for ${windowText(period)} or ${windowText(before)}; usage-export status says what is missing.\n`;
  }
  return metrics.map((metric) => renderMetric(change, metric)).join("\n");
}

function renderMetric(change: UsageChange, metric: MetricChange): string {
  const tables = metric.breakdowns.map((breakdown) => `\n${renderTable(metric, breakdown)}`);
  return `${changeSentences(change, metric).map(sentenceText).join("\n")}\n${tables.join("")}`;
}

function sentenceText(sentence: Sentence): string {
  return sentence.map((piece) => (typeof piece === "string" ? piece : nameText(piece.group))).join("");
}

const NAME_COLUMNS_MAX = 40;

/** One line without characters that turn the text around, and never longer than its column. */
function nameText(name: string | null): string {
  if (name === null) return "(no value)";
  return truncatedName(name, NAME_COLUMNS_MAX) || "(blank)";
}

function renderTable(metric: MetricChange, { grouping, parts }: ChangeBreakdown): string {
  const rows = [
    [`${metricName(metric.metric)} by ${groupingWord(grouping)}`, "before", "after", "change", ""],
    ...parts.map((part) => [partText(part), ...amountTexts(part), part.status ?? ""]),
    ["total", ...amountTexts(metric), ""],
  ];
  const widths = [0, 1, 2, 3].map((column) => Math.max(...rows.map((row) => displayWidth(row[column] ?? ""))));
  return rows
    .map(
      (row) =>
        `${row
          .map((cell, i) => padded(cell, widths[i] ?? 0, i > 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

function partText({ part, group, project, groups }: ChangePart): string {
  if (part === "others") return counted(groups, "other");
  if (part !== "group") return `(${part})`;
  return project === null ? nameText(group) : `${nameText(group)} in ${nameText(project)}`;
}

function amountTexts({ before, after, change }: Pick<ChangePart, "before" | "after" | "change">): readonly string[] {
  return [
    exactText(before),
    exactText(after),
    change.startsWith("-") || change === "0" ? exactText(change) : `+${exactText(change)}`,
  ];
}

function padded(text: string, width: number, toTheRight: boolean): string {
  const space = " ".repeat(Math.max(0, width - displayWidth(text)));
  return toTheRight ? space + text : text + space;
}
