// Writes the answers that runs get. What arrives while a batch is written is written together afterwards.

import { setTimeout as sleep } from "node:timers/promises";
import { batched } from "../../async.ts";
import { rowCount, type StoredAnswer } from "../../usage/export.ts";
import type { Database } from "../connection/database.ts";
import { isDatabaseFailure } from "../connection/errors.ts";
import { type Answer, mergeAnswers } from "./batches.ts";
import { sliceKey } from "./slices.ts";

export type RunWriter = {
  readonly store: (answer: Answer) => Promise<StoredAnswer>;
  /** A batch waits a moment for more answers while there are requests whose answers may come. */
  readonly whileAsking: <T>(ask: () => Promise<T>) => Promise<T>;
};

/** Rows in a transaction: several answers of the usual size, and little memory. A single answer may be larger. */
const BATCH_ROWS_MAX = 5_000;
/** How long a batch waits for more answers. Nobody notices so short a wait, and a transaction costs as much as some hundred rows. */
const GATHER_MS = 25;
/** While the database works on one batch, the next one is prepared here. */
const BATCHES_AT_ONCE = 2;

export function openRunWriter(db: Database): RunWriter {
  let asking = 0;
  let idle = new AbortController();
  const beforeBatch = async () => {
    if (asking > 0) await sleep(GATHER_MS, undefined, { signal: idle.signal }).catch(() => {});
  };
  return {
    store: batched<Answer, StoredAnswer>((batch) => writeBatch(db, batch), {
      ...{ weightMax: BATCH_ROWS_MAX, weightOf: rowCount, beforeBatch, concurrency: BATCHES_AT_ONCE },
    }),
    async whileAsking(ask) {
      if (asking++ === 0) idle = new AbortController();
      try {
        return await ask();
      } finally {
        if (--asking === 0) idle.abort();
      }
    },
  };
}

type WriteOutcome = StoredAnswer | Error;

async function writeBatch(db: Database, batch: readonly Answer[]): Promise<readonly WriteOutcome[]> {
  const outcomes = new Map<Answer, WriteOutcome>();
  for (const answers of splitConflicts(batch)) {
    for (const [i, outcome] of (await writeTogether(db, answers)).entries()) {
      const answer = answers[i];
      if (answer) outcomes.set(answer, outcome);
    }
  }
  return batch.map((answer) => outcomes.get(answer) ?? new Error("an answer was left out of its batch"));
}

/**
 * Splits a batch into groups in which no two answers are for the same slice. Each group is sorted by run and series: the order in which
 * every process takes its locks.
 */
function splitConflicts(batch: readonly Answer[]): Answer[][] {
  const groups: { readonly keys: Set<string>; readonly answers: Answer[] }[] = [];
  for (const answer of batch) {
    const { seriesId, slices } = answer;
    // All answers of a series without a date count as one slice, whatever the day of their run.
    const keys = slices.map(({ day, undated }) => (undated ? `${seriesId}` : sliceKey({ seriesId, day })));
    let group = groups.at(-1);
    if (group === undefined || keys.some((key) => group?.keys.has(key))) {
      group = { keys: new Set(), answers: [] };
      groups.push(group);
    }
    for (const key of keys) group.keys.add(key);
    group.answers.push(answer);
  }
  return groups.map(({ answers }) => answers.sort(byRunAndSeries));
}

/** Not by localeCompare, whose first call takes 10 ms of CPU time. */
function byRunAndSeries(a: Answer, b: Answer): number {
  if (a.runId === b.runId) return a.seriesId - b.seriesId;
  return a.runId < b.runId ? -1 : 1;
}

/** The outcomes in the order of the answers. If one answer can't be stored, only that one fails, unless the database can't be used. */
async function writeTogether(db: Database, answers: readonly Answer[]): Promise<readonly WriteOutcome[]> {
  try {
    return await mergeAnswers(db, answers);
  } catch (error) {
    const outcome = error instanceof Error ? error : new Error(String(error));
    if (answers.length === 1 || isDatabaseFailure(error)) return answers.map(() => outcome);
    const outcomes: WriteOutcome[] = [];
    for (const answer of answers) outcomes.push(...(await writeTogether(db, [answer])));
    return outcomes;
  }
}
