// Says what the parts of a run found, in a line each.

type Cases = {
  readonly part: string;
  readonly cases: number;
  /** How many cases there are in all, if only every n-th was run. */
  readonly among?: number;
  /** How many of the cases ended before their fault could happen. */
  readonly unreached?: number;
  readonly violations: number;
  readonly seconds: number;
  /** Every how many points a case was run, for each number of programs. */
  readonly points?: string;
};

export function reportCases({ part, cases, among = cases, unreached = 0, violations, seconds, points = "1" }: Cases) {
  process.stdout.write(
    `${part}: ${cases} of ${among} cases, every ${points}, ${unreached} unreached, ${violations} violations, ${seconds} s\n`,
  );
}

const highest = new Map<string, number>();

/** Says an amount if it is the highest of that name so far. */
export function reportHighest(name: string, value: number, unit: string, where: string): void {
  if (value <= (highest.get(name) ?? 0)) return;
  highest.set(name, value);
  process.stdout.write(`${name}: ${value} ${unit} (${where})\n`);
}
