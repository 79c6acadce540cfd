// What the current month is expected to amount to.

import type { Day, Window } from "../usage/days.ts";
import type { Run } from "./scope.ts";
import { literal, projectConditions, type Scope } from "./sql.ts";

/** An estimate of a whole month; the texts are rounded decimals, and no amounts. */
export type Forecast = {
  readonly metric: string;
  /** The first day of the month. */
  readonly month: Day;
  readonly forecast: string;
  readonly low: string;
  readonly high: string;
};

/**
 * Of the current month; none if the period ends in another one. Of several projects the ends of the intervals are added up, so that the
 * interval is rather too wide. A metric of which one project has no forecast is left out.
 */
export async function forecasts(
  run: Run,
  { end }: Window,
  metrics: readonly string[],
  scope: Pick<Scope, "projectIds">,
): Promise<readonly Forecast[]> {
  if (metrics.length === 0) return [];
  const isAsked = [
    "unfiltered",
    `month = date ${literal(`${end.slice(0, 7)}-01`)}`,
    `metric in (${metrics.map(literal).join(", ")})`,
    ...projectConditions(scope),
  ];
  const found = await run<Forecast>(`
select month, metric, trim_scale(sum(forecast))::text as forecast, trim_scale(sum(low))::text as low, trim_scale(sum(high))::text as high
from bi.usage_forecast where ${isAsked.join(" and ")}
group by month, metric having count(forecast) = count(*)`);
  return found.toSorted((a, b) => metrics.indexOf(a.metric) - metrics.indexOf(b.metric));
}
