// CSV (RFC 4180) for spreadsheets: numbers stay numbers there, and no text becomes a formula. Pure.

import type { Amounts, Answer } from "../facts/answer.ts";
import type { Charge } from "../facts/chargeback.ts";
import { isCost } from "../facts/question.ts";
import type { Window } from "../usage/days.ts";

export type CsvColumn = {
  readonly name: string;
  /** Numbers, days and times stay bare: they can't hold a formula, and some programs take a quoted number for text. */
  readonly isText: boolean;
};

type CsvRow = readonly (string | null)[];

/** Without this mark Excel reads UTF-8 in the code page of the machine, and shows wrong letters. */
const BYTE_ORDER_MARK = "\uFEFF";

/** A formula begins with one of the first four; some programs also accept the full-width ones. */
const SIGN = /[=+\-@＝＋－＠]/;
/** Spaces, quotes and invisible characters before the sign do not prevent a formula. */
const BEGINS_FORMULA = new RegExp(`^(?:[\\t\\r\\n]|[\\s"\\p{Cc}\\p{Cf}]*${SIGN.source})`, "u");
/** Characters that may stand before the sign of a formula. Some spreadsheets begin a new cell at those of NEW_CELL. */
const GAPS = /[\s;"\p{Cc}\p{Cf}]+/gu;
const NEW_CELL = /[;\t\r\n]/;

export function csvHeader(columns: readonly CsvColumn[]): string {
  return `${BYTE_ORDER_MARK}${columns.map(({ name }) => quoted(name)).join(",")}\r\n`;
}

/** Null is an empty cell, and an empty text is "". */
export function csvLine(columns: readonly CsvColumn[], row: CsvRow): string {
  const cells = columns.map(({ isText }, at) => {
    const text = row[at] ?? null;
    if (text === null) return "";
    return isText ? quoted(withoutFormula(text)) : text;
  });
  return `${cells.join(",")}\r\n`;
}

function quoted(text: string): string {
  return `"${text.replaceAll('"', '""')}"`;
}

/** Puts an apostrophe before each formula, which makes it text. A formula may also begin within the text, where a new cell may begin. */
export function withoutFormula(text: string): string {
  const escaped = text.replaceAll(GAPS, (gap: string, at: number) =>
    NEW_CELL.test(gap) && SIGN.test(text.charAt(at + gap.length)) ? `${gap}'` : gap,
  );
  return BEGINS_FORMULA.test(text) ? `'${escaped}` : escaped;
}

function csvFile(columns: readonly CsvColumn[], rows: readonly CsvRow[]): string {
  return csvHeader(columns) + rows.map((row) => csvLine(columns, row)).join("");
}

const TEXT_COLUMNS = ["state", "part", "group", "complete", "currency", "project_id", "project", "api_key", "metric"];

function csvColumns(...names: readonly string[]): readonly CsvColumn[] {
  return names.map((name) => ({ name, isText: TEXT_COLUMNS.includes(name) }));
}

export const CSV_ROWS = ["groups", "days"] as const;

const GROUP_COLUMNS = csvColumns("part", "group", "amount", "amount_before", "change", "complete", "currency");
const DAY_COLUMNS = csvColumns("usage_date", "state", "part", "group", "amount", "complete", "currency");

/** Each row says whether the whole answer is complete. */
export function answerCsv(answer: Answer, rows: (typeof CSV_ROWS)[number]): string {
  const [columns, parts] = rows === "groups" ? [GROUP_COLUMNS, groupRows(answer)] : [DAY_COLUMNS, dayRows(answer)];
  const all = parts.map((row) => [...row, String(answer.complete), answer.question.currency]);
  return csvFile(columns, all);
}

function groupRows({ groups, other, total }: Answer): readonly CsvRow[] {
  const cells = ({ amount, before, change }: Amounts) => [amount, before, change];
  return [
    ...groups.map((one) => ["group", one.group, ...cells(one)]),
    ...(other ? [["other", null, ...cells(other)]] : []),
    ...(total ? [["total", null, ...cells(total)]] : []),
  ];
}

function dayRows({ days, groups, otherByDay }: Answer): readonly CsvRow[] {
  return days.flatMap(({ day, state }, i): CsvRow[] => [
    ...groups.flatMap(({ group, byDay }) => (byDay ? [[day, state, "group", group, byDay[i] ?? null]] : [])),
    ...(otherByDay ? [[day, state, "other", null, otherByDay[i] ?? null]] : []),
  ]);
}

const CHARGEBACK_COLUMNS = [
  ...csvColumns("from", "to", "project_id", "project", "api_key", "metric"),
  ...csvColumns("quantity", "estimated", "billed", "currency", "share", "complete"),
];

/** The amounts of a metric add up exactly to its total. Quantities, estimated and billed cost stand in columns of their own. */
export function chargebackCsv(charges: readonly Charge[], { start, end }: Window): string {
  const rows = charges.map(({ projectId, project, group, metric, currency, amount, total, isComplete }): CsvRow => {
    const inColumn = (column: string) => (column === (isCost(metric) ? metric : "quantity") ? amount : null);
    return [
      ...[start, end, projectId, project, group, metric],
      ...["quantity", "estimated_cost", "billed_cost"].map(inColumn),
      ...[currency, (Number(amount) / Number(total)).toFixed(6), String(isComplete)],
    ];
  });
  return csvFile(CHARGEBACK_COLUMNS, rows);
}
