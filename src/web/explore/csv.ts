// An answer as CSV: its groups, or its amounts by day. Each row says whether something is lacking. Pure.

import type { Answer } from "../../facts/answer.ts";
import { type CsvColumn, csvHeader, csvLine } from "../../show/csv.ts";

export const CSV_ROWS = ["groups", "days"] as const;
export type CsvRows = (typeof CSV_ROWS)[number];

type Row = readonly (string | null)[];

export function answerCsv(answer: Answer, rows: CsvRows): string {
  const [columns, all] = rows === "groups" ? [GROUP_COLUMNS, groupRows(answer)] : [DAY_COLUMNS, dayRows(answer)];
  return csvHeader(columns) + all.map((row) => csvLine(columns, row)).join("");
}

const TEXTS = new Set(["state", "part", "group", "complete", "currency"]);
/** Of the whole answer, in each row. */
const LACKING = ["complete", "projects_left_out", "projects_ended", "currency"];
const columnsOf = (...names: readonly string[]): CsvColumn[] =>
  [...names, ...LACKING].map((name) => ({ name, isText: TEXTS.has(name) }));

const GROUP_COLUMNS = columnsOf(
  ...["part", "rank", "group", "amount", "amount_before", "change", "groups"],
  ...["incomplete_days", "unread_days", "incomplete_days_before", "unread_days_before"],
);
const DAY_COLUMNS = columnsOf("usage_date", "state", "part", "rank", "group", "amount", "groups");

function lackingCells({ complete, lacking, question }: Answer): Row {
  const counts = [lacking.projectsLeftOutCount, lacking.projectsEndedCount].map(String);
  return [String(complete), ...counts, question.currency];
}

function groupRows(answer: Answer): Row[] {
  const { groups, other, total, lacking } = answer;
  const { incompleteDays, unreadDays, incompleteDaysBefore, unreadDaysBefore } = lacking;
  const lackingDays = [incompleteDays, unreadDays, incompleteDaysBefore, unreadDaysBefore].map(
    (days) => `${days.length}`,
  );
  return [
    ...groups.map((one) => ["group", `${one.rank}`, one.group, ...amountCells(one), "1"]),
    ...(other ? [["other", null, null, ...amountCells(other), `${other.groups}`]] : []),
    ...(total ? [["total", null, null, ...amountCells(total), `${groups.length + (other?.groups ?? 0)}`]] : []),
  ].map((row) => [...row, ...lackingDays, ...lackingCells(answer)]);
}

function amountCells({ amount, before, change }: Pick<Answer["groups"][number], "amount" | "before" | "change">) {
  return [amount, before, change];
}

function dayRows(answer: Answer): Row[] {
  const { days, groups, other, otherByDay, beforeByDay } = answer;
  const others = groups.filter(({ byDay }) => !byDay).length + (other?.groups ?? 0);
  const ofPeriod = days.flatMap(({ day, state }, i): Row[] => [
    ...groups.flatMap(({ rank, group, byDay }) =>
      byDay ? [[day, state, "group", String(rank), group, byDay[i] ?? null, "1"]] : [],
    ),
    // Sets of tags do not add up, so the others have no amount.
    ...(otherByDay || (answer.total === null && others > 0)
      ? [[day, state, "other", null, null, otherByDay?.[i] ?? null, String(others)]]
      : []),
  ]);
  const before = (beforeByDay ?? []).map(
    ({ day, state, amount }): Row => [day, state, "before", null, null, amount, null],
  );
  return [...ofPeriod, ...before].map((row) => [...row, ...lackingCells(answer)]);
}
