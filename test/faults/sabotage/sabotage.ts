// A small wrong change of the product, and the test that must notice it.

/** A file of the suite, and the name of one of its tests or what is in the names of several. */
export type Guard = readonly [file: string, test: string];

export type Sabotage = {
  /** What the product does wrong then. */
  readonly name: string;
  readonly file: string;
  /** Stands in the file exactly once. */
  readonly replace: string;
  readonly by: string;
  readonly caughtBy: Guard;
};

/** Throws where the file has become another one since: a change that is not made would prove nothing. */
export function spoiled(text: string, { name, file, replace, by }: Sabotage): string {
  const places = text.split(replace).length - 1;
  if (places !== 1) {
    throw new Error(`the sabotage "${name}" is out of date: ${file} has what it replaces ${places} times, not once`);
  }
  return text.replace(replace, () => by);
}
