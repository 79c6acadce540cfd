// The work that is measured on a database with history: storing new rows, reading the dashboard, and queries of a BI tool.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { openLog } from "../../src/app.ts";
import { databaseNow } from "../../src/db/connection/database.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import { seriesIdOf } from "../../src/db/usage/series.ts";
import { openRunWriter } from "../../src/db/usage/writer.ts";
import { Scrubber } from "../../src/secret.ts";
import { addDays, type Day, dayOf, daysOf } from "../../src/usage/days.ts";
import { type Dimension, USAGE_DIMENSIONS } from "../../src/usage/dimensions.ts";
import { seriesOf } from "../../src/usage/plan.ts";
import { columnsOf, type NormalisedSlice, sliceOf } from "../../src/usage/rows.ts";
import { openDashboard } from "../../src/web/dashboard/dashboard.ts";
import { dashboardReads } from "../../src/worker/dashboard-reads.ts";
import { secondsOf } from "./figures.ts";
import { GROUPS, type GrownDatabase, groupAt } from "./grown-database.ts";

/** Returns how many seconds the measured part took. */
export type Work = (one: GrownDatabase, round: number) => Promise<number>;

/** Reads a page of the dashboard. Opens a new dashboard each time, so that no page is cached. */
export const readPage =
  (path: string): Work =>
  async ({ db, config }) => {
    const dashboard = openDashboard({
      log: await openLog("warn", false, new Scrubber()),
      readiness: () => ({ live: true, reasons: [] }),
      ...dashboardReads(db, () => config),
    });
    return secondsOf(async () => {
      const page = await dashboard.pages[path]?.(new URLSearchParams());
      if (page?.status !== 200 || page.body.includes("could not be read"))
        throw new Error(`the page is not whole: ${page?.status}`);
    });
  };

export function ask(question: string): Work {
  return ({ db }) =>
    db.transaction().execute(async (tx) => {
      await sql`set local role usage_reader`.execute(tx);
      return secondsOf(() => sql.raw(question).execute(tx));
    });
}

const ANSWERS = 10;
const DAYS_AN_ANSWER = 10;
export const NEW_ROWS = ANSWERS * DAYS_AN_ANSWER * GROUPS;

/** Stores new days of ten series. Their groups are known, as in every nightly export but the first. */
export const storeNewRows: Work = async ({ db, config, ids, rows }, round) => {
  if (rows === 0) {
    await sql`truncate usage_export.snapshot_row, usage_export.superseded_row, usage_export.slice`.execute(db);
  }
  const start = addDays(dayOf(await databaseNow(db)), round * DAYS_AN_ANSWER);
  const days = daysOf({ start, end: addDays(start, DAYS_AN_ANSWER - 1) });
  const guards = { emptyGuard: "confirm", cliffGuard: "confirm" } as const;
  const asked = { fetchNo: await nextFetchNo(db), askedMs: performance.now() };
  const fetch = { ...asked, ...guards, runId: randomUUID(), undated: "snapshot", ownDays: false } as const;
  const answers = Array.from({ length: ANSWERS }, (_, i) => {
    const grouping = USAGE_DIMENSIONS[i % USAGE_DIMENSIONS.length] ?? "model";
    const [series] = config.exports.flatMap((job) =>
      seriesOf(job, { projects: [`project-${i}`], groupings: [grouping] }),
    );
    if (!series) throw new Error(`project-${i} is not read by ${grouping}`);
    return {
      ...fetch,
      seriesId: seriesIdOf(ids, series),
      grouping,
      slices: days.map((day) => sliceOn(day, grouping)),
    };
  });
  const write = openRunWriter(db).store;
  let stored = 0;
  const seconds = await secondsOf(async () => {
    for (const { rowsChanged } of await Promise.all(answers.map(write))) stored += rowsChanged;
  });
  if (stored !== NEW_ROWS) throw new Error(`${stored} rows were stored in place of ${NEW_ROWS}`);
  return seconds;
};

function sliceOn(day: Day, grouping: Dimension): NormalisedSlice {
  const rows = Array.from({ length: GROUPS }, (_, i) => ({
    group: groupAt(grouping, i),
    metrics: {
      values: [`${i}.7242069444`, `${i}.7395791667`, "0", "0", "0", String(9_158_866 + i), String(373_381 + i)],
      extra: null,
    },
  }));
  return sliceOf(day, false, columnsOf(rows));
}
