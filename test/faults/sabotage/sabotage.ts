// A small wrong change of the product, and the test that must notice it.

/** A file of the suite, and the name of one of its tests, or a part that the names of several have in common. */
export type Guard = readonly [file: string, test: string];

export type Sabotage = {
  /** What the product does wrong with this change. */
  readonly name: string;
  readonly file: string;
  /** Must be in the file exactly once. */
  readonly replace: string;
  readonly by: string;
  readonly caughtBy: Guard;
};

/** Returns the changed text of the file. Throws if the text to replace is not there exactly once: an unchanged file proves nothing. */
export function applySabotage(text: string, { name, file, replace, by }: Sabotage): string {
  const places = text.split(replace).length - 1;
  if (places !== 1) {
    throw new Error(
      `the sabotage "${name}" is out of date: expected its text once in ${file}, found it ${places} times`,
    );
  }
  return text.replace(replace, () => by);
}
