// Numbers that order fetches: a later fetch has a higher number, whichever process makes it.

import { sql } from "kysely";
import { batched } from "../../async.ts";
import type { Database } from "../connection/database.ts";
import { type Tx, withRetries } from "../connection/transaction.ts";

export type FetchNumbers = () => Promise<number>;

/** How many numbers are taken beyond those that are needed now, for calls that begin shortly afterwards. */
const SPARE = 128;
/** How much older than its call a spare number may be. Of two processes that read a slice within this time, either may win. */
const VALID_MS = 50;
/** How many numbers one query takes at most, without the spare ones. More fetches never begin at the same time. */
const WANTED_MAX = 1_000;

/** Numbers that are requested at the same time are taken with one query. `now` is in milliseconds and never goes back. */
export function openFetchNumbers(db: Database, now: () => number = () => performance.now()): FetchNumbers {
  let spare: number[] = [];
  let takenMs = Number.NEGATIVE_INFINITY;
  let queryMs = VALID_MS;
  let refilling = false;
  const take = batched<undefined, number>(
    async (wanted) => {
      const askedMs = now();
      const numbers = await withRetries(() => nextNumbers(db, wanted.length + SPARE));
      spare = numbers.splice(wanted.length);
      takenMs = askedMs;
      queryMs = now() - askedMs;
      return numbers;
    },
    { weightMax: WANTED_MAX, weightOf: () => 1 },
  );
  /** Replaces the spare numbers before they are too old, so that no call waits. Errors are ignored: the next call that has to wait gets its own. */
  const refill = async () => {
    refilling = true;
    await take(undefined).catch(() => {});
    refilling = false;
  };
  return async () => {
    const ageMs = now() - takenMs;
    const kept = ageMs <= VALID_MS ? spare.shift() : undefined;
    const isRunningOut = ageMs > Math.max(VALID_MS / 2, VALID_MS - 4 * queryMs) || spare.length < SPARE / 2;
    if (kept !== undefined && isRunningOut && !refilling) void refill();
    return kept ?? (await take(undefined));
  };
}

export async function nextFetchNo(db: Database | Tx): Promise<number> {
  const [no] = await nextNumbers(db, 1);
  if (no === undefined) throw new Error("the database gave no fetch number");
  return no;
}

async function nextNumbers(db: Database | Tx, count: number): Promise<number[]> {
  // As one text: a row for each number takes several times as long to read.
  const { rows } = await sql<{ numbers: string }>`
    select pg_catalog.string_agg(pg_catalog.nextval('usage_export.fetch_no')::pg_catalog.text, ' ') as numbers
    from pg_catalog.generate_series(1, ${count}::pg_catalog.int4)
  `.execute(db);
  return rows.flatMap(({ numbers }) => numbers.split(" ").map(Number));
}
