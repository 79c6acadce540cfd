// Numbers that order fetches: a later fetch has a higher number, whichever process makes it.

import { sql } from "kysely";
import { batched } from "../../async.ts";
import type { Database } from "../connection/database.ts";
import { type Tx, withRetries } from "../connection/transaction.ts";

export type FetchNumbers = () => Promise<number>;

/** Taken together with those that are wanted, for calls that begin right after. */
const SPARE = 128;
/** How much older than its call a number may be: of two processes that read a slice in the same moment either may count. */
const VALID_MS = 50;
/** More fetches than that do not begin at the same time. */
const WANTED_MAX = 1_000;

/** Numbers that are wanted in the same moment are taken together. `now` is in milliseconds and never goes back. */
export function openFetchNumbers(db: Database, now: () => number = () => performance.now()): FetchNumbers {
  let spare: number[] = [];
  let takenMs = Number.NEGATIVE_INFINITY;
  let refilling = false;
  const take = batched<undefined, number>(
    async (wanted) => {
      const askedMs = now();
      const numbers = await takeFetchNos(db, wanted.length + SPARE);
      spare = numbers.splice(wanted.length);
      takenMs = askedMs;
      return numbers;
    },
    { weightMax: WANTED_MAX, weightOf: () => 1 },
  );
  /** Before they are too old, so that no call waits for them. Where that fails, whoever wants one finds out. */
  const refill = async () => {
    refilling = true;
    await take(undefined).catch(() => {});
    refilling = false;
  };
  return async () => {
    const ageMs = now() - takenMs;
    const kept = ageMs <= VALID_MS ? spare.shift() : undefined;
    const isRunningOut = ageMs > VALID_MS / 2 || spare.length < SPARE / 2;
    if (kept !== undefined && isRunningOut && !refilling) void refill();
    return kept ?? (await take(undefined));
  };
}

export async function nextFetchNo(db: Database): Promise<number> {
  return onlyOne(await takeFetchNos(db, 1));
}

/** The same as a part of a transaction. */
export async function takeFetchNo(tx: Tx): Promise<number> {
  return onlyOne(await nextNumbers(tx, 1));
}

async function takeFetchNos(db: Database, count: number): Promise<number[]> {
  return withRetries(() => nextNumbers(db, count));
}

async function nextNumbers(db: Database | Tx, count: number): Promise<number[]> {
  const { rows } = await sql<{ no: string | number }>`
    select pg_catalog.nextval('usage_export.fetch_no') as no from pg_catalog.generate_series(1, ${count}::pg_catalog.int4)
  `.execute(db);
  return rows.map(({ no }) => Number(no));
}

function onlyOne([no]: readonly number[]): number {
  if (no === undefined) throw new Error("the database gave no fetch number");
  return no;
}
