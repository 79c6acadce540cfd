// Stores the answers of a process: those that come while others are being stored are stored together after them.

import { setTimeout as sleep } from "node:timers/promises";
import { batched } from "../batched.ts";
import { isRefusedData } from "../errors.ts";
import type { NormalisedSlice } from "../usage/normalise.ts";
import type { Database } from "./database.ts";
import { type Also, type Answer, type AnswerToMerge, type MergeResult, mergeAnswers } from "./merge.ts";
import { sliceKey } from "./slices.ts";

/** An answer that waits, which is large: it is taken apart when its time has come. */
export type Incoming = Omit<Answer, "slices"> & {
  /** Its rows, about. */
  readonly rowCount: number;
  /** Throws where it is not an answer; that concerns nobody else. */
  readonly slices: () => readonly NormalisedSlice[];
  readonly also?: Also | undefined;
};

export type Merging = (incoming: Incoming) => Promise<MergeResult>;

/** Rows in a transaction: several answers of the usual size, and little memory. An answer alone may be larger. */
const ROWS_MAX = 5_000;
/** A transaction costs as much as some hundred rows: short enough not to be felt, and several answers come meanwhile. */
const GATHER_MS = 10;
/** While the database is busy with one batch, the next one is taken apart here. */
const AT_ONCE = 2;

export function openMerging(db: Database): Merging {
  return batched<Incoming, MergeResult>((batch) => storeBatch(db, batch), {
    weightMax: ROWS_MAX,
    weightOf: ({ rowCount }) => rowCount,
    gather: () => sleep(GATHER_MS),
    atOnce: AT_ONCE,
  });
}

type Outcome = MergeResult | Error;

async function storeBatch(db: Database, batch: readonly Incoming[]): Promise<readonly Outcome[]> {
  const outcomes = new Map<Incoming, Outcome>();
  const prepared: Prepared[] = [];
  for (const incoming of batch) {
    try {
      prepared.push({ incoming, answer: { ...incoming, slices: incoming.slices() }, also: incoming.also });
    } catch (error) {
      outcomes.set(incoming, asError(error));
    }
  }
  for (const together of apart(prepared)) {
    for (const [incoming, outcome] of await storeTogether(db, together)) outcomes.set(incoming, outcome);
  }
  return batch.map((incoming) => outcomes.get(incoming) ?? new Error("an answer was left out of its batch"));
}

type Prepared = AnswerToMerge & { readonly incoming: Incoming };

/** Groups that have no slice twice, each in the order in which all processes take their locks: by run and series. */
function apart(prepared: readonly Prepared[]): Prepared[][] {
  const groups: { readonly keys: Set<string>; readonly members: Prepared[] }[] = [];
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

async function storeTogether(
  db: Database,
  merges: readonly Prepared[],
): Promise<readonly (readonly [Incoming, Outcome])[]> {
  try {
    const results = await mergeAnswers(db, merges);
    return merges.flatMap(({ incoming }, i) => (results[i] ? [[incoming, results[i]] as const] : []));
  } catch (error) {
    // One of them is to blame, and only it is to pay.
    if (merges.length === 1 || !isRefusedData(error)) return merges.map(({ incoming }) => [incoming, asError(error)]);
    const outcomes: (readonly [Incoming, Outcome])[] = [];
    for (const one of merges) outcomes.push(...(await storeTogether(db, [one])));
    return outcomes;
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
