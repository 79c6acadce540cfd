// An answer as CSV: its groups, or its amounts by day. Each row says whether something is lacking. Pure.

import { csvOf } from "../../dump/csv.ts";
import type { Column, ColumnKind, Row } from "../../dump/view.ts";
import type { Answer } from "./answer.ts";

export const CSV_ROWS = ["groups", "days"] as const;
export type CsvRows = (typeof CSV_ROWS)[number];

export async function answerCsv(answer: Answer, rows: CsvRows): Promise<string> {
  const [columns, all] = rows === "groups" ? [GROUP_COLUMNS, groupRows(answer)] : [DAY_COLUMNS, dayRows(answer)];
  const view = { name: rows, meaning: "", columns: columns.map(columnOf) };
  async function* batches() {
    yield all;
  }
  let text = "";
  for await (const piece of csvOf(view, batches())) text += piece;
  return text;
}

type NamedKind = readonly [name: string, kind: ColumnKind];

function columnOf([name, kind]: NamedKind): Column {
  return { name, kind, meaning: "" };
}

/** Of the whole answer, in each row. */
const LACKING_COLUMNS: readonly NamedKind[] = [
  ["complete", "text"],
  ["projects_left_out", "integer"],
  ["projects_ended", "integer"],
  ["currency", "text"],
];

function lackingCells({ complete, lacking, question }: Answer): Row {
  const counts = [lacking.projectsLeftOutCount, lacking.projectsEndedCount].map(String);
  return [String(complete), ...counts, question.currency];
}

const GROUP_COLUMNS: readonly NamedKind[] = [
  ["part", "text"],
  ["rank", "integer"],
  ["group", "text"],
  ["amount", "number"],
  ["amount_before", "number"],
  ["change", "number"],
  ["groups", "integer"],
  ["incomplete_days", "integer"],
  ["unread_days", "integer"],
  ["incomplete_days_before", "integer"],
  ["unread_days_before", "integer"],
  ...LACKING_COLUMNS,
];

function groupRows(answer: Answer): Row[] {
  const { groups, other, total, lacking } = answer;
  const lackingDays = [
    lacking.incompleteDays,
    lacking.unreadDays,
    lacking.incompleteDaysBefore,
    lacking.unreadDaysBefore,
  ].map(({ length }) => String(length));
  return [
    ...groups.map(({ rank, group, ...amounts }) => ["group", String(rank), group, ...texts(amounts), "1"]),
    ...(other ? [["other", null, null, ...texts(other), String(other.groups)]] : []),
    ...(total ? [["total", null, null, ...texts(total), String(groups.length + (other?.groups ?? 0))]] : []),
  ].map((row) => [...row, ...lackingDays, ...lackingCells(answer)]);
}

function texts({ amount, before, change }: Pick<Answer["groups"][number], "amount" | "before" | "change">) {
  return [amount, before, change];
}

const DAY_COLUMNS: readonly NamedKind[] = [
  ["usage_date", "day"],
  ["state", "text"],
  ["part", "text"],
  ["rank", "integer"],
  ["group", "text"],
  ["amount", "number"],
  ["groups", "integer"],
  ...LACKING_COLUMNS,
];

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
