// Writes the lists of dimensions and metrics into the SQL of tables and views, so that none keeps one of its own. Pure.

import { addsUp, TOTAL_GROUPINGS, USAGE_DIMENSIONS } from "../../usage/dimensions.ts";
import { METRIC_TABLE } from "../../usage/metrics.ts";

/**
 * `{{overlapping}}`: the groupings that don't add up, as literals; `{{totals}}`: those that do, and "none", the best first.
 * `{{metric: TEXT}}`: TEXT for each metric of usage, joined by commas; `{{metric "SEPARATOR": TEXT}}` by something else. In it `$m` is
 * the metric's name, `$meaning` and the shorter `$what` say what it is, and `$unit` is what it counts.
 */
export function expandLists(text: string): string {
  return text
    .replaceAll("{{overlapping}}", literals(USAGE_DIMENSIONS.filter((one) => !addsUp(one))))
    .replaceAll("{{totals}}", literals(TOTAL_GROUPINGS))
    .replaceAll(/\{\{metric(?: "([^"]*)")?: ([\s\S]*?)\}\}/g, (_, separator: string | undefined, one: string) =>
      METRIC_TABLE.map(({ name, meaning, unit }) => {
        const [what = ""] = meaning.split(",");
        return one
          .replaceAll("$meaning", meaning)
          .replaceAll("$what", what.charAt(0).toLowerCase() + what.slice(1))
          .replaceAll("$unit", unit.charAt(0).toUpperCase() + unit.slice(1))
          .replaceAll("$m", name);
      }).join(separator?.replaceAll("\\n", "\n") ?? ", "),
    );
}

function literals(names: readonly string[]): string {
  return names.map((name) => `'${name}'`).join(", ");
}
