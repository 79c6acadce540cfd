// How long storing answers takes: new rows into an empty table and into a full one, the same rows again, and a tenth of them changed.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { type Database, openPostgres } from "../../src/db/connection/database.ts";
import { migrateToLatest } from "../../src/db/connection/migrate.ts";
import { mergeAnswers } from "../../src/db/usage/batches.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import { registerSeries, seriesIdOf } from "../../src/db/usage/series.ts";
import { daysOf } from "../../src/usage/days.ts";
import { USAGE_DIMENSIONS } from "../../src/usage/dimensions.ts";
import { columnsOf, groupOf, type NormalisedSlice, sliceOf } from "../../src/usage/rows.ts";
import { secondsOfCopy } from "./bare-copy.ts";
import { median, secondsOf } from "./figures.ts";

/** A round stores seven answers, one for each dimension, with seven days each: 100,009 rows. */
const DAYS = daysOf({ start: "2026-03-10", end: "2026-03-16" });
const GROUPS = 2_041;
const FULL_ROUNDS = 10;
const ROUNDS = 5;

/** Medians over the rounds; each round measures every case once. */
export type MergeSeconds = {
  readonly rows: number;
  /** A bare COPY of the same rows. */
  readonly copy: number;
  readonly newRows: number;
  readonly sameAgain: number;
  readonly tenthChanged: number;
  readonly newRowsIntoFull: number;
  readonly fullRows: number;
  /** One query of `bi.usage_as_of` over the full table. */
  readonly asOf: number;
};

/** Both databases are migrated here, and may be filled. */
export async function measureMerge(emptyUrl: string, fullUrl: string): Promise<MergeSeconds> {
  const [empty, full] = [openPostgres(emptyUrl), openPostgres(fullUrl)];
  try {
    await migrateToLatest(empty);
    await migrateToLatest(full);
    for (let round = 0; round < FULL_ROUNDS; round++) await storeAll(full, randomUUID(), sameNumbers);
    // The groups are then known, the code compiled and the caches warm, as in every nightly export but the first.
    await storeAll(empty, randomUUID(), sameNumbers);

    const seconds: Record<"copy" | "newRows" | "sameAgain" | "tenthChanged" | "newRowsIntoFull", number[]> = {
      copy: [],
      newRows: [],
      sameAgain: [],
      tenthChanged: [],
      newRowsIntoFull: [],
    };
    for (let round = 0; round < ROUNDS; round++) {
      await sql`truncate usage_export.snapshot_row, usage_export.superseded_row, usage_export.slice`.execute(empty);
      const project = randomUUID();
      seconds.newRows.push(await storeAll(empty, project, sameNumbers));
      seconds.copy.push(await secondsOfCopy(empty, emptyUrl));
      seconds.newRowsIntoFull.push(await storeAll(full, randomUUID(), sameNumbers));
      seconds.sameAgain.push(await storeAll(empty, project, sameNumbers));
      seconds.tenthChanged.push(await storeAll(empty, project, (group) => (group % 10 === 0 ? "2" : "1")));
    }
    const rows = USAGE_DIMENSIONS.length * DAYS.length * GROUPS;
    return {
      rows,
      copy: median(seconds.copy),
      newRows: median(seconds.newRows),
      sameAgain: median(seconds.sameAgain),
      tenthChanged: median(seconds.tenthChanged),
      newRowsIntoFull: median(seconds.newRowsIntoFull),
      fullRows: rows * FULL_ROUNDS,
      asOf: await secondsOf(() => sql`select count(*) from bi.usage_as_of(now())`.execute(full)),
    };
  } finally {
    await empty.destroy();
    await full.destroy();
  }
}

const sameNumbers = (): string => "1";

/** Stores one answer for each dimension. Returns how many seconds storing took, without the time for making the answers. */
async function storeAll(db: Database, projectId: string, requests: (group: number) => string): Promise<number> {
  const project = { id: projectId, name: projectId };
  const filter = { name: "all", features: {}, dimensions: {} };
  const series = USAGE_DIMENSIONS.map((grouping) => ({ project, source: "usage" as const, grouping, filter }));
  const ids = await registerSeries(
    db,
    series.map((one) => ({ series: one, windowDays: DAYS.length })),
  );
  const runId = randomUUID();
  let seconds = 0;
  for (const one of series) {
    const answer = {
      seriesId: seriesIdOf(ids, one),
      grouping: one.grouping,
      fetchNo: await nextFetchNo(db),
      runId,
      slices: DAYS.map((day, i) => sliceOn(day, one.grouping, i, requests)),
      emptyGuard: "confirm",
      undated: "snapshot",
      cliffGuard: "confirm",
      askedMs: performance.now(),
      ownDays: false,
    } as const;
    seconds += await secondsOf(() => mergeAnswers(db, [answer]));
  }
  return seconds;
}

function sliceOn(
  day: string,
  grouping: (typeof USAGE_DIMENSIONS)[number],
  dayNo: number,
  requests: (group: number) => string,
): NormalisedSlice {
  const rows = Array.from({ length: GROUPS }, (_, i) => ({
    group: groupOf(grouping, [`${grouping}-${i}`, `another-${i % 100}`], 0),
    metrics: {
      values: [
        `${i}.724206944444${dayNo}`,
        `${i}.739579166666${dayNo}`,
        "0",
        "0",
        "0",
        String(9_158_866 + i),
        requests(i),
      ],
      extra: null,
    },
  }));
  return sliceOf(day, false, columnsOf(rows));
}
