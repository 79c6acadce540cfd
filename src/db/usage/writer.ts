// Stores the answers of runs, and records which projects a run has finished. Answers that arrive while one batch is written form the next batch.
// A batch is one transaction: slices are replaced whole, and only rows that differ are written.

import { setTimeout as sleep } from "node:timers/promises";
import { batched } from "../../async.ts";
import { addDays, type Day, dayOf } from "../../usage/days.ts";
import { STORED_METRICS } from "../../usage/metrics.ts";
import { type NormalisedSlice, rowCount } from "../../usage/normalise.ts";
import type { Grouping } from "../../usage/series.ts";
import {
  type AnswerRules,
  comparesTotals,
  decideSlice,
  decideSnapshot,
  type FilterDoubt,
  reasonToKeep,
  type Totals,
} from "../../usage/slice-decision.ts";
import { type Database, databaseNow } from "../connection/database.ts";
import { isDatabaseFailure } from "../connection/errors.ts";
import { inTransaction, type Tx } from "../connection/transaction.ts";
import { endProjects, type ProjectEnd, type StoredRun } from "../jobs/runs.ts";
import { extendDueByAnswer } from "./stored-series.ts";
import {
  type DecidedSlice,
  type FetchedSlice,
  insertMissing,
  internGroups,
  lockSlices,
  mergeRows,
  readSlices,
  sliceKey,
  sumSlices,
  writeSlices,
} from "./stored-slices.ts";
import { type DecidedSnapshot, datedSeries, lockSeriesAndReadSnapshots, writeSnapshots } from "./undated-snapshots.ts";

export type AnswerToStore = {
  readonly rules: AnswerRules;
  readonly slices: readonly NormalisedSlice[];
  /** Why the numbers of the answer may not be those of the filter. */
  readonly doubt?: FilterDoubt | undefined;
  readonly fetchNo: number;
  /** `performance.now()` right before the call. */
  readonly askedMs: number;
  readonly seriesId: number;
  readonly grouping: Grouping;
  readonly runId: string;
  /** No window was sent: the days of the answer become due. */
  readonly serviceChoosesDays: boolean;
};

export type StoredAnswer = {
  /** `doubt`: why the slice is suspect. `undated`: it was stored as a snapshot without a day. */
  readonly slices: readonly {
    readonly day: Day;
    readonly decision: DecidedSlice["decision"];
    readonly doubt?: string | undefined;
    readonly undated?: true;
  }[];
  readonly rowsChanged: number;
};

export type Writer = ReturnType<typeof openWriter>;

/** The most rows of a batch: several answers of the usual size. A single answer may have more. */
const BATCH_ROWS_MAX = 5_000;
const BATCH_PROJECTS_MAX = 500;
/** How long a batch waits for more answers: a transaction costs as much as a few hundred rows. */
const GATHER_MS = 25;
/** While the database writes one batch, this process prepares the next. */
const BATCHES_AT_ONCE = 2;

export function openWriter(db: Database) {
  let requestsUnderWay = 0;
  let allAnswered = new AbortController();
  const beforeBatch = async () => {
    if (requestsUnderWay > 0) await sleep(GATHER_MS, undefined, { signal: allAnswered.signal }).catch(() => {});
  };
  return {
    store: batched<AnswerToStore, StoredAnswer>((batch) => writeBatch(db, batch), {
      weightMax: BATCH_ROWS_MAX,
      weightOf: ({ slices }) => rowCount(slices),
      beforeBatch,
      concurrency: BATCHES_AT_ONCE,
    }),
    /** Returns the run if this was its last project. If several projects end the run together, only one caller gets it. */
    endProject: batched<ProjectEnd, StoredRun | undefined>((batch) => endProjects(db, batch), {
      weightMax: BATCH_PROJECTS_MAX,
      beforeBatch,
    }),
    /** Makes the request. While any request is under way, a batch waits a moment for more answers. */
    async trackRequest<T>(request: () => Promise<T>): Promise<T> {
      if (requestsUnderWay === 0) allAnswered = new AbortController();
      requestsUnderWay++;
      try {
        return await request();
      } finally {
        requestsUnderWay--;
        if (requestsUnderWay === 0) allAnswered.abort();
      }
    },
  };
}

/** Stores the answers together, or one by one if two share a slice or snapshot, or if one is refused. If the database fails, all fail. */
async function writeBatch(db: Database, answers: readonly AnswerToStore[]): Promise<readonly (StoredAnswer | Error)[]> {
  const oneByOne = async () => (await Array.fromAsync(answers, (answer) => writeBatch(db, [answer]))).flat();
  const keys = answers.flatMap(({ seriesId, slices }) =>
    slices.flatMap(({ day, undated }) => [sliceKey({ seriesId, day }), ...(undated ? [`${seriesId}`] : [])]),
  );
  if (answers.length > 1 && new Set(keys).size < keys.length) return oneByOne();
  try {
    return await mergeAnswers(db, answers);
  } catch (error) {
    const outcome = error instanceof Error ? error : new Error(String(error));
    return answers.length === 1 || isDatabaseFailure(error) ? answers.map(() => outcome) : oneByOne();
  }
}

type SliceToStore = FetchedSlice & { readonly answer: AnswerToStore; readonly filterDoubt: FilterDoubt | undefined };
type ReadSlice = SliceToStore & Pick<DecidedSlice, "stored">;

/** Stores all answers or none; no two may share a slice. Safe to repeat: a stored slice is then "unchanged", a stored snapshot "stale". */
export async function mergeAnswers(db: Database, answers: readonly AnswerToStore[]): Promise<readonly StoredAnswer[]> {
  const all = answers
    .flatMap((answer) => {
      const { seriesId, grouping, fetchNo, runId, doubt: filterDoubt } = answer;
      return answer.slices.map((slice) => ({ ...slice, seriesId, grouping, fetchNo, runId, filterDoubt, answer }));
    })
    // Every process must insert slices in the same order.
    .sort((a, b) => a.seriesId - b.seriesId || (a.day < b.day ? -1 : 1));
  const snapshots = await undatedSnapshots(db, all);
  const slices = all.filter((slice) => !snapshots.has(slice));
  return inTransaction(db, async (tx, attempt) => {
    // After a stale read or a deadlock, slices are locked before they are read again. As in every transaction, groups come before slices.
    if (attempt > 1) {
      await internGroups(tx, all);
      await lockSlices(tx, slices);
    }
    return readAndWrite(tx, answers, slices, [...snapshots]);
  });
}

/** The slices to store as undated snapshots. An empty answer names no day either: it becomes a snapshot unless the series has dated answers. */
async function undatedSnapshots(db: Database, all: readonly SliceToStore[]): Promise<ReadonlySet<SliceToStore>> {
  const undated = all.filter((slice) => slice.undated && slice.answer.rules.undated === "snapshot");
  const empty = undated.filter(({ rowCount }) => rowCount === 0);
  const dated = empty.length > 0 ? await datedSeries(db, empty) : new Set<number>();
  return new Set(undated.filter(({ seriesId, rowCount }) => rowCount > 0 || !dated.has(seriesId)));
}

async function readAndWrite(
  tx: Tx,
  answers: readonly AnswerToStore[],
  slices: readonly SliceToStore[],
  undated: readonly SliceToStore[],
) {
  // The first attempt locks no slice: Postgres logs a lock like a change, and most slices of most answers are unchanged.
  const { read, missing, readAt } = await readSlices(tx, slices);
  const changing = read.filter((slice) => reasonToKeep(slice.stored, slice) === undefined);
  const groupIds = await internGroups(tx, [...changing, ...undated]);
  await insertMissing(tx, missing);
  // extendDueByAnswer may delete slices, so it is called in the order of the series, in which every transaction inserts slices.
  const windowless = answers.filter((one) => one.serviceChoosesDays).sort((a, b) => a.seriesId - b.seriesId);
  // The series are locked whose due days (windowless answers) or newest snapshot (undated slices) may change.
  const seriesToLock = [...windowless, ...undated];
  const newestSnapshots = await lockSeriesAndReadSnapshots(tx, seriesToLock);
  // The time is read after an insert or a lock, which may have waited: the second of two changes of a slice must have the later time.
  const seenAt = readAt && missing.length + seriesToLock.length === 0 ? readAt : await databaseNow(tx);
  const totals = await storedTotals(tx, changing);
  const decided = read.map((slice) => ({ ...slice, ...decide(slice, totals, seenAt) }));
  const snapshots = undated.map((slice) => {
    const before = newestSnapshots.get(slice.seriesId);
    return { ...slice, before, decision: decideSnapshot(before, slice) };
  });

  const replaced = decided.filter(({ decision }) => decision === "replace");
  await writeSlices(tx, decided, seenAt);
  const changedRows = await mergeRows(tx, replaced, groupIds, seenAt);
  await writeSnapshots(tx, snapshots, groupIds, seenAt);
  const slicesOf = Map.groupBy(decided, ({ answer }) => answer);
  const yesterday = addDays(dayOf(seenAt), -1);
  for (const answer of windowless) await extendDueByAnswer(tx, answer.seriesId, slicesOf.get(answer) ?? [], yesterday);

  const snapshotsOf = Map.groupBy(snapshots, ({ answer }) => answer);
  return answers.map((answer) => storedAnswer(slicesOf.get(answer) ?? [], snapshotsOf.get(answer) ?? [], changedRows));
}

/**
 * The sums of the stored slices that are compared with answers, by `sliceKey`. Sums of all metrics would take a tenth of the merge's time, so
 * they are read only if the stored slice or the answer has no requests.
 */
async function storedTotals(tx: Tx, slices: readonly ReadSlice[]): Promise<ReadonlyMap<string, Totals>> {
  const compared = slices.filter(({ stored, rowCount, answer }) => comparesTotals(stored.rows, rowCount, answer.rules));
  const totals = await sumSlices(tx, compared, ["requests"]);
  const withoutRequests = compared.filter((slice) => totalsOf(slice, totals).every((sum) => sum === undefined));
  return new Map([...totals, ...(await sumSlices(tx, withoutRequests))]);
}

function storedAnswer(
  slices: readonly DecidedSlice[],
  snapshots: readonly DecidedSnapshot[],
  changedRows: ReadonlyMap<string, number>,
): StoredAnswer {
  return {
    slices: [
      ...slices.map(({ day, decision, doubt }) => ({ day, decision, doubt: doubt?.reason })),
      ...snapshots.map(({ day, decision }) => ({ day, decision, undated: true }) as const),
    ],
    rowsChanged:
      slices.reduce((sum, slice) => sum + (changedRows.get(sliceKey(slice)) ?? 0), 0) +
      snapshots.reduce((sum, { decision, rowCount }) => sum + (decision === "replace" ? rowCount : 0), 0),
  };
}

/** `totals` are those of `storedTotals`. */
function decide(slice: ReadSlice, totals: ReadonlyMap<string, Totals>, now: Date) {
  const { answer, stored, rowCount: rows } = slice;
  const askedAt = new Date(now.getTime() - (performance.now() - answer.askedMs));
  const incoming = { ...slice, askedAt, rows, totals: totalsOf(slice, totals) };
  return { askedAt, ...decideSlice({ ...stored, totals: totals.get(sliceKey(slice)) }, incoming, answer.rules) };
}

/** The sums of the absolute amounts in the answer's slice; undefined for a metric without a stored sum, because it is not compared. */
function totalsOf(slice: SliceToStore, totals: ReadonlyMap<string, Totals>): Totals {
  const { metricNames, metrics } = slice.columns;
  const storedSums = totals.get(sliceKey(slice));
  return STORED_METRICS.map((metric, i) => {
    if (storedSums?.[i] === undefined) return undefined;
    const sent = (metrics[metricNames.indexOf(metric)] ?? []).filter((amount) => amount !== null);
    return sent.length > 0 ? sent.reduce<number>((sum, amount) => sum + Math.abs(Number(amount)), 0) : undefined;
  });
}
