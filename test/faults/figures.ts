// Reports what the parts of a run found, as lines of a file. At the end figures-table.ts makes a table of them.

import { appendFileSync } from "node:fs";
import { z } from "zod";

const Cases = z.object({
  part: z.string(),
  /** What happened in the cases; if it is left out, `part` tells it. */
  kind: z.string().optional(),
  cases: z.number(),
  /** How many cases there are in all, if only every n-th was run. */
  among: z.number().optional(),
  /** How many of the cases ended before their fault could happen. */
  unreached: z.number().optional(),
  violations: z.number(),
  seconds: z.number(),
  /** Every how many points a case was run, for each number of programs. */
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

/** Adds to a share, such as the leaks among all searched artefacts, which the table sums over all cases. */
export function reportShare(share: string, count: number, of: number): void {
  report({ share, count, of });
}

/** Reports an amount. The table shows the highest one of that name; `where` names its case. */
export function reportHighest(highest: string, value: number, unit: string, where: string): void {
  report({ highest, value, unit, where });
}

function report(line: Line): void {
  const file = process.env.FAULTS_FIGURES;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(line)}\n`);
}
