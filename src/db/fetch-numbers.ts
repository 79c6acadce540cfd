// The numbers that fetches are told apart by: later ones have higher numbers, whichever process makes them.

import { sql } from "kysely";
import { batched } from "../batched.ts";
import type { Database } from "./database.ts";
import { again, type Tx } from "./transaction.ts";

export type FetchNumbers = () => Promise<number>;

/** More fetches than that do not begin at the same time. */
const NUMBERS_MAX = 1_000;
/** Those who ask are more than may call at once, so nobody waits for it. */
const GATHER_MS = 3;

/** Numbers that are wanted at the same time are taken together. */
export function openFetchNumbers(db: Database): FetchNumbers {
  const next = batched<undefined, number>((wanted) => takeFetchNos(db, wanted.length), {
    weightMax: NUMBERS_MAX,
    weightOf: () => 1,
    gatherMs: GATHER_MS,
  });
  return () => next(undefined);
}

export async function nextFetchNo(db: Database): Promise<number> {
  return onlyOne(await takeFetchNos(db, 1));
}

/** The same as a part of a transaction. */
export async function takeFetchNo(tx: Tx): Promise<number> {
  return onlyOne(await numbers(tx, 1));
}

async function takeFetchNos(db: Database, count: number): Promise<number[]> {
  return again(() => numbers(db, count));
}

async function numbers(db: Database | Tx, count: number): Promise<number[]> {
  const { rows } = await sql<{ no: string | number }>`
    select pg_catalog.nextval('usage_export.fetch_no') as no from pg_catalog.generate_series(1, ${count}::pg_catalog.int4)
  `.execute(db);
  return rows.map(({ no }) => Number(no));
}

function onlyOne([no]: readonly number[]): number {
  if (no === undefined) throw new Error("the database gave no fetch number");
  return no;
}
