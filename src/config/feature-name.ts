// Names of features. The service takes any unknown query parameter for a feature, so a dimension or a date among the
// features would be sent, and answered with plausible, wrong numbers.

import { z } from "zod";
import { DIMENSIONS } from "../usage/series.ts";

export const FeatureName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'the name of a feature: letters, digits, ".", "_" and "-"')
  .superRefine((name, context) => {
    const message = reservedFault(name.toLowerCase());
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });

function reservedFault(name: string): string | undefined {
  if (name === "grouping" || name === "groupings") {
    return 'is no feature: what to group by belongs in "groupings" of the export';
  }
  if (name === "start" || name === "end") {
    return 'is no feature: the days belong in "window" of the export, as { "days": 7 }';
  }
  const dimension = DIMENSIONS.find((known) => name === known || name === `${known}s` || `${name}s` === known);
  if (dimension === undefined) return undefined;
  return `is no feature: the dimension belongs in "dimensions" of this filter, as ${JSON.stringify(dimension)}`;
}
