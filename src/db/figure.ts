// One number that a monitor shows.

export type Figure = {
  readonly gauge: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

/** Absent where there is no such number. */
export function figure(gauge: string, labels: Figure["labels"], value: number | null | undefined): readonly Figure[] {
  return value === null || value === undefined ? [] : [{ gauge, labels, value }];
}
