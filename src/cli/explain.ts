// The command `explain`: why usage and cost rose or fell, in plain words and as tables that add up.

import type { App } from "../app.ts";
import { queryAtOneMoment } from "../db/connection/transaction.ts";
import { AppError } from "../errors.ts";
import type { Answer } from "../facts/answer.ts";
import { type Change, type ChangePart, type ChangeSplit, changes, costChanges } from "../facts/changes.ts";
import type { AskedMetric, Split } from "../facts/question.ts";
import type { Query } from "../facts/scope.ts";
import { withDatabase } from "../open-database.ts";
import { counted, exactText, metricName, windowText, withSign } from "../show/format.ts";
import { changeSentences, groupName, nameText } from "../show/sentences.ts";
import { comparedPeriod, type Day, dayOf, type Window } from "../usage/days.ts";
import { groupingNoun } from "../usage/dimensions.ts";
import type { UsageGrouping } from "../usage/series.ts";
import { writeAnswer } from "./output.ts";
import { STATEMENT_SECONDS_MAX, withOptionInError } from "./report.ts";
import { choosePeriod, notBegunError, type PeriodOptions } from "./selection.ts";

export type ExplainOptions = PeriodOptions & {
  readonly day?: Day;
  readonly project?: readonly string[];
  readonly metric: readonly (AskedMetric | "cost")[];
  readonly grouping?: readonly UsageGrouping[];
  readonly limit: number;
  readonly json?: boolean;
};

/** Exits with 0 even if days are missing, unlike `status`: the answer mentions them. */
export async function runExplain(app: App, options: ExplainOptions): Promise<number> {
  const period = explainedPeriod(options, dayOf(new Date()));
  const found = await withDatabase(app, (db) => {
    const timeLimit = { secondsMax: STATEMENT_SECONDS_MAX };
    return withOptionInError(queryAtOneMoment(db, (query) => readChanges(query, options, period), timeLimit));
  });
  const output = { period, changes: found.map((change) => ({ ...change, sentences: changeSentences(change) })) };
  writeAnswer(app, options, output, ({ changes: explained }) =>
    explained.length > 0 ? explained.map(renderChange).join("\n") : nothingText(period, options),
  );
  return 0;
}

async function readChanges(query: Query, options: ExplainOptions, period: Window): Promise<readonly Change[]> {
  const question = {
    period,
    before: comparedPeriod(period),
    projects: options.project,
    limit: options.limit,
    // --grouping does not offer these two, so they are always explained.
    groupings: options.grouping && [...options.grouping, ...(["line_item", "project"] as const satisfies Split[])],
  };
  const found: Change[] = [];
  for (const metric of new Set(options.metric)) {
    if (metric === "cost") found.push(...(await costChanges(query, question)));
    else found.push(await changes(query, { ...question, metric }));
  }
  const hasNumber = ({ answer: { total } }: Change) => (total?.amount ?? total?.before ?? null) !== null;
  return found.filter(hasNumber);
}

function nothingText(period: Window, { metric }: ExplainOptions): string {
  const days = `${windowText(period)} or ${windowText(comparedPeriod(period))}`;
  if (metric.every((one) => one === "cost"))
    return `No cost is known for ${days}: costs need an export with "source": "billing", or "prices" in the configuration and usage that is read by model.\n`;
  return `No usage of this kind is stored for ${days}; usage-export status says what is missing.\n`;
}

const EXPLAINED_DAYS = 7;

function explainedPeriod({ day, from, to }: ExplainOptions, today: Day): Window {
  if (day === undefined) return choosePeriod({ from, to }, today, EXPLAINED_DAYS);
  if ((from ?? to) !== undefined) {
    throw new AppError("config", "--day: expected without --from and --to, which name the days as well");
  }
  if (day > today) throw notBegunError(day, today);
  return { start: day, end: day };
}

function renderChange({ answer, splits, sentences }: Change & { readonly sentences: readonly string[] }): string {
  const tables = splits.filter(({ parts }) => parts.length > 0).map((split) => `\n${renderTable(answer, split)}`);
  return `${sentences.join("\n")}\n${tables.join("")}`;
}

/** The name stands last, so that names of any length and width leave the numbers in their columns. */
function renderTable({ question, total }: Answer, { grouping, parts }: ChangeSplit): string {
  const { metric, currency } = question;
  const amounts = `${metricName(metric)}${currency === null ? "" : ` in ${currency}`}`;
  return textTable([
    ["before", "after", "change", "", `${amounts} by ${groupingNoun(grouping)}`],
    ...parts.map((part) => {
      const name = partName(grouping, part, parts);
      return [exactText(part.before), exactText(part.after), signed(part.change), part.status ?? "", name];
    }),
    [exactText(total?.before ?? "–"), exactText(total?.amount ?? "–"), signed(total?.change), "", "total"],
  ]);
}

const NAME_LENGTH_MAX = 200;

function partName(grouping: string, part: ChangePart, among: readonly ChangePart[]): string {
  if (part.part === "others") return counted(part.groups, "other");
  return part.part === "group" ? nameText(groupName(grouping, part, among), NAME_LENGTH_MAX) : `(${part.part})`;
}

function textTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const padded = (cell: string, i: number) => (i < widths.length - 1 ? cell.padStart(widths[i] ?? 0) : cell);
  return rows.map((row) => `${row.map(padded).join("  ")}\n`).join("");
}

function signed(amount: string | null | undefined): string {
  return amount ? withSign(exactText(amount), amount) : "";
}
