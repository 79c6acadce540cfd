// The command `explain`: why usage and cost rose or fell, in plain words and as tables that add up.

import { type App, withDatabase } from "../app.ts";
import { databaseNow } from "../db/connection/database.ts";
import { readSnapshot, type Tx } from "../db/connection/transaction.ts";
import { chooseCostSources, readCostChange } from "../db/report/cost-change.ts";
import { readBilledChange, readUsageChange, type StoredProject, storedProjects } from "../db/report/usage-change.ts";
import { AppError } from "../errors.ts";
import { type CostChange, type CostPart, costSentences, costTitle } from "../report/cost-change.ts";
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
import { addDays, type Day, dayOf, periodBefore, type Window } from "../usage/days.ts";
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
  const explained = await withDatabase(app, async (db) => {
    const period = explainedPeriod(options, dayOf(await databaseNow(db)));
    return readSnapshot(db, (tx) => readExplained(tx, options, period), STATEMENT_SECONDS_MAX);
  });
  writeAnswer(app, options, options.json ? explainedJson(explained) : explained, () =>
    renderExplained(explained, options),
  );
  return 0;
}

/** `billed` is what the service charges in projects whose billing is read, `costs` the estimate of the others. */
type Explained = { readonly change: UsageChange; readonly billed: UsageChange; readonly costs: readonly CostChange[] };

async function readExplained(tx: Tx, options: ExplainOptions, period: Window): Promise<Explained> {
  const fault = (name: string) => `the database has no usage of ${name}`;
  const stored = await storedProjects(tx);
  requireKnown("--project", options.project, [...new Set(stored.map(({ name }) => name))], fault);
  const metrics = [...new Set(options.metric)].filter((metric) => metric !== COST);
  const question = {
    period,
    before: periodBefore(period),
    projects: options.project && projectIds(stored, options.project),
    metrics,
    groupings: options.grouping,
    groupsMax: options.limit,
  };
  const { before } = question;
  const none = { period, before, projects: [], metrics: [], notFinalDays: [], lackingDays: [] };
  const change = metrics.length > 0 ? await readUsageChange(tx, question) : none;
  if (!options.metric.includes(COST)) return { change, billed: none, costs: [] };
  const { billed, estimated } = await chooseCostSources(tx, question);
  return {
    change,
    billed: billed.length > 0 ? await readBilledChange(tx, { ...question, projects: billed }) : none,
    costs: await readCostChange(tx, { ...question, projects: estimated }),
  };
}

const COST = "cost";

/** Of several projects that had the same name, the one that is still read. */
function projectIds(stored: readonly StoredProject[], names: readonly string[]): readonly string[] {
  return names.flatMap((name) => {
    const named = stored.filter((project) => project.name === name);
    const active = named.filter(({ isActive }) => isActive);
    return (active.length > 0 ? active : named).map(({ id }) => id);
  });
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
function explainedJson({ change, billed, costs }: Explained) {
  const withSentences = (of: UsageChange) => ({
    ...of,
    metrics: of.metrics.map((metric) => ({ ...metric, sentences: changeSentences(of, metric).map(sentenceText) })),
  });
  const isRest = billed.metrics.length > 0;
  return {
    ...withSentences(change),
    billed: withSentences(billed),
    costs: costs.map((cost) => ({ ...cost, sentences: costSentences(change, cost, isRest).map(sentenceText) })),
  };
}

function renderExplained({ change, billed, costs }: Explained, { metric: asked }: ExplainOptions): string {
  const { period, before, metrics } = change;
  const isRest = billed.metrics.length > 0;
  const texts = [
    ...metrics.map((metric) => renderMetric(change, metric)),
    ...billed.metrics.map((metric) => renderMetric(billed, metric)),
    ...costs.map((cost) => renderCost(change, cost, isRest)),
  ];
  if (texts.length > 0) return texts.join("\n");
  if (asked.every((metric) => metric === COST)) {
    return `No cost is known for ${windowText(period)} or ${windowText(before)}: it needs an export with "source": "billing", or "prices" in the configuration and usage that is read by model.\n`;
  }
  return `No usage of this kind is stored for ${windowText(period)} or ${windowText(before)}; usage-export status says what is missing.\n`;
}

function renderCost(change: UsageChange, cost: CostChange, isRest: boolean): string {
  const { parts, compared } = cost;
  const effects = ({ volume, price }: Pick<CostPart, "volume" | "price">) => [signed(volume), signed(price)];
  const table = textTable([
    [`${costTitle(cost)} by model`, "before", "after", "change", "by usage", "by prices", ""],
    ...parts.map((part) => [
      partText({ ...part, project: null }),
      ...amountTexts(part),
      ...effects(part),
      part.status ?? "",
    ]),
    ["total", ...amountTexts(cost), ...effects(compared), ""],
  ]);
  return `${costSentences(change, cost, isRest).map(sentenceText).join("\n")}\n\n${table}`;
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
  return textTable(rows);
}

/** The columns between the first and the last are numbers. */
function textTable(rows: readonly (readonly string[])[]): string {
  const columns = (rows[0]?.length ?? 1) - 1;
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => displayWidth(row[column] ?? ""))),
  );
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

function partText({ part, group, project, groups }: Pick<ChangePart, "part" | "group" | "project" | "groups">): string {
  if (part === "others") return counted(groups, "other");
  if (part !== "group") return `(${part})`;
  return project === null ? nameText(group) : `${nameText(group)} in ${nameText(project)}`;
}

function amountTexts({ before, after, change }: Pick<ChangePart, "before" | "after" | "change">): readonly string[] {
  return [exactText(before), exactText(after), signed(change)];
}

function signed(amount: string | null): string {
  if (amount === null) return "";
  return amount.startsWith("-") || amount === "0" ? exactText(amount) : `+${exactText(amount)}`;
}

function padded(text: string, width: number, toTheRight: boolean): string {
  const space = " ".repeat(Math.max(0, width - displayWidth(text)));
  return toTheRight ? space + text : text + space;
}
