// Which periods can be shown. Pure.

import type { Day } from "../usage/day.ts";

export const DAYS_DEFAULT = 30;
/** A leap year. More days than that can't be told apart in a chart. */
export const DAYS_MAX = 366;
/** No usage is older, and a database has no year 0. */
export const DAY_MIN: Day = "2000-01-01";
