// What the parts of a run found out, each as a line of its own in one file, of which figures-table.ts makes the table at the end.

import { appendFileSync } from "node:fs";
import { z } from "zod";

const Cases = z.object({
  part: z.string(),
  /** What happened in them, where it is not told by the part. */
  kind: z.string().optional(),
  cases: z.number(),
  /** How many there are in all, where these are every so many of them. */
  among: z.number().optional(),
  /** Those of them whose fault had no place to happen. */
  unreached: z.number().optional(),
  violations: z.number(),
  seconds: z.number(),
  /** Which of all the points there are were taken. */
  points: z.string().optional(),
});
const Figure = z.object({ figure: z.string(), value: z.string() });
const Share = z.object({ share: z.string(), count: z.number(), of: z.number() });
const Highest = z.object({ highest: z.string(), value: z.number(), unit: z.string(), where: z.string() });

export const Line = z.union([Cases, Figure, Share, Highest]);
export type Line = Readonly<z.infer<typeof Line>>;
export type CasesOfPart = Readonly<z.infer<typeof Cases>>;

export function reportCases(cases: CasesOfPart): void {
  const { part, among = cases.cases, points = "1", unreached = 0, violations, seconds } = cases;
  report(cases);
  process.stdout.write(
    `${part}: ${cases.cases} of ${among} cases, every ${points}, ${unreached} unreached, ${violations} violations, ${seconds} s\n`,
  );
}

/** A figure with its unit: `sabotages caught`, `25 of 25`. */
export function reportFigure(figure: string, value: string): void {
  report({ figure, value });
  process.stdout.write(`${figure}: ${value}\n`);
}

/** Adds to a count that many cases have a part in. */
export function reportShare(share: string, count: number, of: number): void {
  report({ share, count, of });
}

/** One of many amounts, the highest of which counts; `where` says of what it is. */
export function reportHighest(highest: string, value: number, unit: string, where: string): void {
  report({ highest, value, unit, where });
}

function report(line: Line): void {
  const file = process.env.FAULTS_FIGURES;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(line)}\n`);
}
