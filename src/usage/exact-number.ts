// A number of an answer that a JavaScript number cannot hold.

/** Kept as the digits that were sent: 9007199254740993 would lose its last one, and 1e999 would become Infinity. */
export class ExactNumber {
  /** The number as JSON writes it. */
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}
