// Formats the figures of a run as a table. Pure.

import { type CasesOfPart, Line } from "./figures.ts";

const NAME_WIDTH = 52;
const NUMBER_WIDTH = 12;

/** `text` is the content of the file that figures.ts writes. */
export function figuresTable(text: string): string {
  const lines = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line): Line => Line.parse(JSON.parse(line)));
  const cases = lines.flatMap((line) => ("part" in line ? [line] : []));
  const kinds = Map.groupBy(cases, ({ kind, part }) => kind ?? part);
  return [
    row("part", "cases", "of", "unreached", "violations", "seconds", "  every n-th, with 1 / 2 / 3 programs"),
    ...cases.map((each) => caseRow(each.part, [each], each.points)),
    caseRow("all", cases),
    "",
    row("kind", "cases", "of", "unreached", "violations", "seconds"),
    ...[...kinds].map(([kind, all]) => caseRow(kind, all)),
    "",
    ...[...figures(lines)].map(([figure, value]) => `${figure.padEnd(NAME_WIDTH)}${value}`),
    "",
  ].join("\n");
}

function caseRow(name: string, all: readonly CasesOfPart[], points?: string): string {
  const sum = (of: (each: CasesOfPart) => number) => all.reduce((sofar, each) => sofar + of(each), 0);
  const numbers = [
    sum(({ cases }) => cases),
    sum(({ cases, among = cases }) => among),
    sum(({ unreached = 0 }) => unreached),
    sum(({ violations }) => violations),
    sum(({ seconds }) => seconds),
  ];
  return row(name, ...numbers, ...(points === undefined ? [] : [`  ${points}`]));
}

function row(name: string, ...cells: readonly (string | number)[]): string {
  return name.padEnd(NAME_WIDTH) + cells.map((cell) => String(cell).padStart(NUMBER_WIDTH)).join("");
}

/** The values by name: first the figures, then the shares, then the highest amounts. */
function figures(lines: readonly Line[]): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  const shares = Map.groupBy(
    lines.flatMap((line) => ("share" in line ? [line] : [])),
    ({ share }) => share,
  );
  const highest = Map.groupBy(
    lines.flatMap((line) => ("highest" in line ? [line] : [])),
    (line) => line.highest,
  );
  for (const line of lines) if ("figure" in line) values.set(line.figure, line.value);
  for (const [share, all] of shares) {
    const sum = (of: "count" | "of") => all.reduce((sofar, each) => sofar + each[of], 0);
    values.set(share, `${sum("count")} of ${sum("of")}`);
  }
  for (const [name, all] of highest) {
    const { value, unit, where } = all.reduce((a, b) => (b.value > a.value ? b : a));
    values.set(name, `${value} ${unit} (${where})`);
  }
  return values;
}
