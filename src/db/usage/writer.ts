// Writes the answers of a process: answers that arrive while others are being written are written together afterwards.

import { setTimeout as sleep } from "node:timers/promises";
import { batched } from "../../async.ts";
import { isRefusedData } from "../../errors.ts";
import type { NormalisedSlice } from "../../usage/normalise.ts";
import type { Database } from "../connection/database.ts";
import { type Answer, type AnswerToMerge, type InSameTransaction, type MergeResult, mergeAnswers } from "./batches.ts";
import { sliceKey } from "./slices.ts";

/** An answer that waits, which is large: it is taken apart when its time has come. */
export type AnswerToWrite = Omit<Answer, "slices"> & {
  /** Its rows, about. */
  readonly rowCount: number;
  /** Throws where it is not an answer; that concerns nobody else. */
  readonly slices: () => readonly NormalisedSlice[];
  readonly inSameTransaction?: InSameTransaction | undefined;
};

export type AnswerWriter = (incoming: AnswerToWrite) => Promise<MergeResult>;

/** Rows in a transaction: several answers of the usual size, and little memory. An answer alone may be larger. */
const BATCH_ROWS_MAX = 5_000;
/** A transaction costs as much as some hundred rows: short enough not to be felt, and several answers come meanwhile. */
const GATHER_MS = 10;
/** While the database is busy with one batch, the next one is taken apart here. */
const BATCHES_AT_ONCE = 2;

export function openAnswerWriter(db: Database): AnswerWriter {
  return batched<AnswerToWrite, MergeResult>((batch) => writeBatch(db, batch), {
    weightMax: BATCH_ROWS_MAX,
    weightOf: ({ rowCount }) => rowCount,
    beforeBatch: () => sleep(GATHER_MS),
    concurrency: BATCHES_AT_ONCE,
  });
}

type WriteOutcome = MergeResult | Error;

async function writeBatch(db: Database, batch: readonly AnswerToWrite[]): Promise<readonly WriteOutcome[]> {
  const outcomes = new Map<AnswerToWrite, WriteOutcome>();
  const prepared: PreparedAnswer[] = [];
  for (const incoming of batch) {
    try {
      prepared.push({
        incoming,
        answer: { ...incoming, slices: incoming.slices() },
        inSameTransaction: incoming.inSameTransaction,
      });
    } catch (error) {
      outcomes.set(incoming, asError(error));
    }
  }
  for (const together of splitConflicts(prepared)) {
    for (const [incoming, outcome] of await writeTogether(db, together)) outcomes.set(incoming, outcome);
  }
  return batch.map((incoming) => outcomes.get(incoming) ?? new Error("an answer was left out of its batch"));
}

type PreparedAnswer = AnswerToMerge & { readonly incoming: AnswerToWrite };

/** Groups that have no slice twice, each in the order in which all processes take their locks: by run and series. */
function splitConflicts(prepared: readonly PreparedAnswer[]): PreparedAnswer[][] {
  const groups: { readonly keys: Set<string>; readonly members: PreparedAnswer[] }[] = [];
  for (const one of prepared) {
    const { seriesId, slices } = one.answer;
    // All answers of a series without a date count as one slice, whatever the day of their run.
    const keys = slices.map(({ day, undated }) => (undated ? `${seriesId}` : sliceKey({ seriesId, day })));
    let group = groups.at(-1);
    if (group === undefined || keys.some((key) => group?.keys.has(key))) {
      group = { keys: new Set(), members: [] };
      groups.push(group);
    }
    for (const key of keys) group.keys.add(key);
    group.members.push(one);
  }
  return groups.map(({ members }) =>
    members.sort((a, b) => a.answer.runId.localeCompare(b.answer.runId) || a.answer.seriesId - b.answer.seriesId),
  );
}

async function writeTogether(
  db: Database,
  merges: readonly PreparedAnswer[],
): Promise<readonly (readonly [AnswerToWrite, WriteOutcome])[]> {
  try {
    const results = await mergeAnswers(db, merges);
    return merges.flatMap(({ incoming }, i) => (results[i] ? [[incoming, results[i]] as const] : []));
  } catch (error) {
    // One of them is to blame, and only it is to pay.
    if (merges.length === 1 || !isRefusedData(error)) return merges.map(({ incoming }) => [incoming, asError(error)]);
    const outcomes: (readonly [AnswerToWrite, WriteOutcome])[] = [];
    for (const one of merges) outcomes.push(...(await writeTogether(db, [one])));
    return outcomes;
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
