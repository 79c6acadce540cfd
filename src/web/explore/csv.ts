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

const text = (name: string): CsvColumn => ({ name, isText: true });
const plain = (name: string): CsvColumn => ({ name, isText: false });

/** Of the whole answer, in each row. */
const LACKING_COLUMNS: readonly CsvColumn[] = [
  text("complete"),
  plain("projects_left_out"),
  plain("projects_ended"),
  text("currency"),
];

function lackingCells({ complete, lacking, question }: Answer): Row {
  const counts = [lacking.projectsLeftOutCount, lacking.projectsEndedCount].map(String);
  return [String(complete), ...counts, question.currency];
}

const GROUP_COLUMNS: readonly CsvColumn[] = [
  text("part"),
  plain("rank"),
  text("group"),
  plain("amount"),
  plain("amount_before"),
  plain("change"),
  plain("groups"),
  plain("incomplete_days"),
  plain("unread_days"),
  plain("incomplete_days_before"),
  plain("unread_days_before"),
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

const DAY_COLUMNS: readonly CsvColumn[] = [
  plain("usage_date"),
  text("state"),
  text("part"),
  plain("rank"),
  text("group"),
  plain("amount"),
  plain("groups"),
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
