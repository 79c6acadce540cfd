// Arrays of tens of thousands of integers as parameters of a statement.

/** As Postgres reads it. The driver's own conversion takes a microsecond for each element. */
export function integers(numbers: readonly number[]): string {
  return `{${numbers.join(",")}}`;
}
