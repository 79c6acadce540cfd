// What the parts of a run found out, each as a line of its own in one file, and the table that they become at the end.

import { appendFileSync } from "node:fs";
import { z } from "zod";

const Cases = z.object({ part: z.string(), cases: z.number(), violations: z.number(), seconds: z.number() });
const Figure = z.object({ figure: z.string(), value: z.string() });
export type CasesOfPart = Readonly<z.infer<typeof Cases>>;
type Line = CasesOfPart | Readonly<z.infer<typeof Figure>>;

export function reportCases({ part, cases, violations, seconds }: CasesOfPart): void {
  report({ part, cases, violations, seconds }, `${part}: ${cases} cases, ${violations} violations, ${seconds} s`);
}

/** A figure with its unit: `recovered after SIGKILL within`, `26 s`. */
export function reportFigure(figure: string, value: string): void {
  report({ figure, value }, `${figure}: ${value}`);
}

function report(line: Line, text: string): void {
  process.stdout.write(`${text}\n`);
  const file = process.env.FAULTS_FIGURES;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(line)}\n`);
}

/** From the file's text. */
export function figuresTable(text: string): string {
  const lines = text.split("\n").filter((line) => line !== "");
  const parsed = lines.map((line): Line => z.union([Cases, Figure]).parse(JSON.parse(line)));
  const parts = parsed.flatMap((line) => ("part" in line ? [line] : []));
  const sum = (of: "cases" | "violations" | "seconds") => parts.reduce((all, part) => all + part[of], 0);
  const total = { part: "all", cases: sum("cases"), violations: sum("violations"), seconds: sum("seconds") };
  const figures = parsed.flatMap((line) => ("figure" in line ? [line] : []));
  return [
    row("part", "cases", "violations", "seconds"),
    ...[...parts, total].map(({ part, cases, violations, seconds }) => row(part, cases, violations, seconds)),
    "",
    ...figures.map(({ figure, value }) => `${figure.padEnd(PART_WIDTH)}${value}`),
    "",
  ].join("\n");
}

const PART_WIDTH = 44;
const NUMBER_WIDTH = 12;

function row(part: string, ...numbers: readonly (string | number)[]): string {
  return part.padEnd(PART_WIDTH) + numbers.map((number) => String(number).padStart(NUMBER_WIDTH)).join("");
}
