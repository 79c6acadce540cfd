// Says which days amounts lack, and why they are not compared with those of the period before. Pure.

import { counted } from "./figures.ts";
import { type Html, html } from "./html.ts";
import type { Shortfall } from "./report-data.ts";

/** A part compared with a whole would look like a loss, or a gain. Undefined where both periods are whole. */
export function notCompared(shortfall: Shortfall, projects: number): string | undefined {
  const { incompleteDays, incompleteDaysBefore, unreadDays, unreadDaysBefore } = shortfall;
  const lacking = [
    ...lack("this period", incompleteDays, unreadDays),
    ...lack("the period before", incompleteDaysBefore, unreadDaysBefore),
  ];
  if (lacking.length === 0) return undefined;
  return `Not compared with the period before: ${lacking.join("; ")}${projects > 1 ? " (counted for each project)" : ""}.`;
}

function lack(period: string, incomplete: number, unread: number): string[] {
  const reasons = [
    ...(incomplete > 0 ? [`${counted(incomplete, "day is", "days are")} not complete`] : []),
    ...(unread > 0 ? [`${counted(unread, "day was", "days were")} not read`] : []),
  ];
  return reasons.length === 0 ? [] : [`in ${period} ${reasons.join(" and ")}`];
}

/** Beside an amount. */
export function tooLowFlag({ incompleteDays }: Shortfall): Html | undefined {
  return incompleteDays > 0 ? html`<b class="flag">too low</b>` : undefined;
}
