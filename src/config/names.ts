// Names that must be given once, and names that must exist. Pure.

import { came, type Fault, type Path, placeOf } from "./fault.ts";
import { didYouMean } from "./near-miss.ts";

/** A value and where it stands; undefined where the shape has found something else than text. */
export type Named = { readonly value: string | undefined; readonly path: Path };

/** One fault for each value that was there before. */
export function repeats(named: readonly Named[], what: string): Fault[] {
  const first = new Map<string, Path>();
  return named.flatMap(({ value, path }) => {
    if (value === undefined) return [];
    const earlier = first.get(value);
    if (earlier === undefined) {
      first.set(value, path);
      return [];
    }
    return [
      { path, message: `expected ${what}; got ${came(path, value)}, which stands at ${placeOf(earlier)} already` },
    ];
  });
}

/** A reference to something that is not there. */
export function unknown(what: string, known: readonly (string | undefined)[], { value, path }: Named): Fault[] {
  const names = [...new Set(known)].filter((name) => name !== undefined);
  if (value === undefined || names.includes(value)) return [];
  const listed = names.length === 0 ? "there is none" : names.map((name) => JSON.stringify(name)).join(", ");
  return [
    { path, message: `expected the name of ${what} (${listed}); got ${came(path, value)}${didYouMean(value, names)}` },
  ];
}

/** The entries of a list, each with its place. */
export function entriesOf(values: readonly (string | undefined)[], path: Path): Named[] {
  return values.map((value, index) => ({ value, path: [...path, index] }));
}
