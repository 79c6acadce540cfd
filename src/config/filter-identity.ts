// One filter has one name over all exports. The views know a filter by its name and the database by its conditions, so two
// names would show the same usage twice, and two meanings would show different usage as one. Pure.

import { filterKey, NO_CONDITIONS } from "../usage/series.ts";
import { Filter } from "./export-shape.ts";
import { type Fault, type Path, placeOf } from "./fault.ts";
import type { Outline } from "./outline.ts";

type Placed = { readonly name: string; readonly conditions: string; readonly exportIndex: number; readonly path: Path };

/** A filter with a fault is no measure for the next ones: its mend would be a fault of theirs. */
export function filterFaults(outline: Outline): Fault[] {
  const faults: Fault[] = [];
  const sound: Placed[] = [];
  for (const filter of outline.exports.flatMap(filtersOf)) {
    const message = identityFault(filter, sound);
    if (message === undefined) sound.push(filter);
    else faults.push({ path: [...filter.path, "name"], message });
  }
  return faults;
}

function identityFault(filter: Placed, earlier: readonly Placed[]): string | undefined {
  const name = JSON.stringify(filter.name);
  if (filter.name === "all" && filter.conditions !== NO_CONDITIONS) {
    return '"all" is all usage, without conditions: give this filter another name';
  }
  const twice = earlier.find((other) => other.exportIndex === filter.exportIndex && other.name === filter.name);
  if (twice) return `expected each filter of an export once; ${name} stands at ${placeOf(twice.path)} already`;

  const otherMeaning = earlier.find((other) => other.name === filter.name && other.conditions !== filter.conditions);
  if (otherMeaning) {
    return `${name} has other conditions at ${placeOf(otherMeaning.path)}: expected one meaning for a name; rename one of them`;
  }
  const otherName = earlier.find((other) => other.conditions === filter.conditions && other.name !== filter.name);
  if (!otherName) return undefined;
  const same = filter.conditions === NO_CONDITIONS ? "no conditions either" : "the same conditions";
  return `${placeOf(otherName.path)} has ${same} and is called ${JSON.stringify(otherName.name)}: expected one name, or the same usage is shown twice; use one of the two`;
}

function filtersOf(job: Outline["exports"][number], exportIndex: number): Placed[] {
  const path = ["exports", exportIndex, "filters"];
  const raw = job.filters ?? [{ name: "all" }];
  return raw.flatMap((value, index) => {
    // A filter that is wrong in itself is named by the shape, and has no identity yet.
    const parsed = Filter.safeParse(value);
    if (!parsed.success) return [];
    const { name, features, dimensions } = parsed.data;
    return [
      {
        name,
        conditions: filterKey({ name, features: asSent(features), dimensions }),
        exportIndex,
        path: [...path, index],
      },
    ];
  });
}

/** Values of features go out as text. */
export function asSent(features: Readonly<Record<string, string | boolean>>): Record<string, string> {
  return Object.fromEntries(Object.entries(features).map(([name, value]) => [name, String(value)]));
}
