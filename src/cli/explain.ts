// The command `explain`: why usage and cost rose or fell, in plain words and as tables that add up.

import type { App } from "../app.ts";
import { readByStatements } from "../db/connection/transaction.ts";
import { AppError } from "../errors.ts";
import type { Answer } from "../facts/answer.ts";
import { type Change, type ChangeSplit, changes, costChanges, isKnown } from "../facts/changes.ts";
import type { AskedMetric, Split } from "../facts/question.ts";
import type { Query } from "../facts/scope.ts";
import { withDatabase } from "../open-database.ts";
import { exactText, metricName, windowText } from "../show/format.ts";
import { characterCount, truncatedName } from "../show/html.ts";
import { changeSentences, groupName, partText } from "../show/sentences.ts";
import { comparedPeriod, type Day, dayOf, type Window } from "../usage/days.ts";
import { groupingNoun } from "../usage/dimensions.ts";
import type { UsageGrouping } from "../usage/series.ts";
import { writeAnswer } from "./output.ts";
import { namingOption, STATEMENT_SECONDS_MAX } from "./report.ts";
import { choosePeriod, notBegunError, type PeriodOptions } from "./selection.ts";

export type ExplainOptions = PeriodOptions & {
  readonly day?: Day;
  readonly project?: readonly string[];
  readonly metric: readonly string[];
  readonly grouping?: readonly UsageGrouping[];
  /** How many groups each table shows. */
  readonly limit: number;
  readonly json?: boolean;
};

/** Exit status 0 also if days are missing: the answer says so, and the exit status of `status` does. */
export async function runExplain(app: App, options: ExplainOptions): Promise<number> {
  const period = explainedPeriod(options, dayOf(new Date()));
  const found = await withDatabase(app, (db) => {
    const limit = { secondsMax: STATEMENT_SECONDS_MAX };
    return namingOption(readByStatements(db, (query) => readChanges(query, options, period), limit));
  });
  const answer = { period, changes: found.map((change) => ({ ...change, sentences: changeSentences(change) })) };
  writeAnswer(app, options, answer, ({ changes }) =>
    changes.length > 0 ? changes.map(renderChange).join("\n") : nothingText(period, options),
  );
  return 0;
}

const COST = "cost";

async function readChanges(query: Query, options: ExplainOptions, period: Window): Promise<readonly Change[]> {
  const question = {
    period,
    before: comparedPeriod(period),
    projects: options.project,
    limit: options.limit,
    groupings: options.grouping && [...options.grouping, ...(["line_item", "project"] as const satisfies Split[])],
  };
  const found: Change[] = [];
  for (const metric of new Set(options.metric)) {
    if (metric === COST) found.push(...(await costChanges(query, question)));
    else found.push(await changes(query, { ...question, metric: metric as AskedMetric }));
  }
  return found.filter(isKnown);
}

function nothingText(period: Window, { metric }: ExplainOptions): string {
  const days = `${windowText(period)} or ${windowText(comparedPeriod(period))}`;
  if (metric.every((one) => one === COST))
    return `No cost is known for ${days}: it needs an export with "source": "billing", or "prices" in the configuration and usage that is read by model.\n`;
  return `No usage of this kind is stored for ${days}; usage-export status says what is missing.\n`;
}

const EXPLAINED_DAYS = 7;

function explainedPeriod({ day, from, to }: ExplainOptions, today: Day): Window {
  if (day !== undefined) {
    if (from !== undefined || to !== undefined)
      throw new AppError("config", "--day: expected without --from and --to, which name the days as well");
    if (day > today) throw notBegunError(day, today);
    return { start: day, end: day };
  }
  return choosePeriod({ from, to }, today, EXPLAINED_DAYS);
}

function renderChange({ answer, splits, sentences }: Change & { readonly sentences: readonly string[] }): string {
  const tables = splits.filter(({ parts }) => parts.length > 0).map((split) => `\n${renderTable(answer, split)}`);
  return `${sentences.join("\n")}\n${tables.join("")}`;
}

function renderTable({ question, total }: Answer, split: ChangeSplit): string {
  const { grouping, parts } = split;
  const { metric, currency } = question;
  const amounts = `${metricName(metric)}${currency === null ? "" : ` in ${currency}`}`;
  const names = partNames(split);
  const rows = parts.map((part, i) => {
    const numbers = [exactText(part.before), exactText(part.after), signed(part.change)];
    return [names[i] ?? "", ...numbers, part.status ?? ""];
  });
  return textTable([
    [`${amounts} by ${groupingNoun(grouping)}`, "before", "after", "change", ""],
    ...rows,
    ["total", exactText(total?.before ?? "–"), exactText(total?.amount ?? "–"), signed(total?.change), ""],
  ]);
}

const NAME_COLUMNS = 40;
/** Only for names that have the same beginning. */
const LONG_NAME_COLUMNS = 200;

/** The name of each part. Groups whose shortened names are equal get longer names. */
function partNames({ grouping, parts }: ChangeSplit): readonly string[] {
  const names = parts.map((part) => groupName(grouping, part, parts));
  const short = names.map((name) => truncatedName(name, NAME_COLUMNS));
  return parts.map((part, i) => {
    if (part.part === "others") return partText(part);
    if (part.part !== "group") return `(${partText(part)})`;
    const name = short[i] ?? "";
    const isUnique = short.indexOf(name) === short.lastIndexOf(name);
    return (isUnique ? name : truncatedName(names[i] ?? "", LONG_NAME_COLUMNS)) || "(blank)";
  });
}

/** The first and the last column are texts, the others numbers. */
function textTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => characterCount(row[column] ?? ""))));
  const lines = rows.map((row) => {
    const cells = row.map((cell, column) => {
      const space = " ".repeat((widths[column] ?? 0) - characterCount(cell));
      return column === 0 || column === row.length - 1 ? cell + space : space + cell;
    });
    return `${cells.join("  ").trimEnd()}\n`;
  });
  return lines.join("");
}

function signed(amount: string | null | undefined): string {
  if (amount === null || amount === undefined) return "";
  return amount.startsWith("-") || amount === "0" ? exactText(amount) : `+${exactText(amount)}`;
}
