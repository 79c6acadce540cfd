// Reads what the service was asked for, and what is stored: runs, coverage and rows.

import { sql } from "kysely";
import { expect } from "vitest";
import type { Database } from "../../src/db/connection/database.ts";
import type { Emulator, SeenRequest } from "../support/emulator.ts";
import type { ProgramContext } from "./program-context.ts";

export type Run = Readonly<
  Record<"job" | "kind" | "trigger" | "status", string> &
    Record<"requests" | "planned" | "complete" | "stale" | "failed", number>
>;

export async function runs(db: Database): Promise<readonly Run[]> {
  const { rows } = await sql<Run>`
    select job, kind, trigger, status, requests, slices_planned as planned, slices_complete as complete, slices_stale as stale,
      slices_failed as failed
    from bi.runs order by started_at, job
  `.execute(db);
  return rows;
}

/** Waits until `count` runs have ended. Returns all ended runs, the oldest first. */
export async function waitForRuns(db: Database, count: number): Promise<readonly Run[]> {
  const ended = async () => (await runs(db)).filter(({ status }) => !["running", "interrupted"].includes(status));
  await expect.poll(async () => (await ended()).length).toBeGreaterThanOrEqual(count);
  return ended();
}

/** The number of slices of each status. */
export async function coverage(db: Database): Promise<Readonly<Record<string, number>>> {
  const { rows } = await sql<{ status: string; slices: number }>`
    select status, count(*)::integer as slices from bi.coverage group by status
  `.execute(db);
  return Object.fromEntries(rows.map(({ status, slices }) => [status, slices]));
}

/** The paths of the breakdown requests that the service got. */
export function breakdowns(emulator: Emulator): readonly string[] {
  return emulator.requests.flatMap(({ path }) => (path.includes("/usage/breakdown") ? [path] : []));
}

/** Runs a worker until no run is left, and stops it. */
export async function workOnce(context: ProgramContext, db: Database): Promise<void> {
  const worker = context.work({ LOG_LEVEL: "debug" });
  await worker.waitFor("tick finished");
  const working = async () => (await runs(db)).filter(({ status }) => status === "running").length;
  await expect.poll(working).toBe(0);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
}

/** All rows, with the system columns that change whenever a row is written, even with the same values. */
export async function rowsAsWritten(db: Database): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const { rows } = await sql<Readonly<Record<string, unknown>>>`
    select xmin::text, ctid::text, r.* from usage_export.slice_row r order by series_id, usage_date, group_id
  `.execute(db);
  return rows;
}

type SliceStatus = { readonly status: string; readonly error: string | null };

/** The status of each filter, grouping or project. If its days differ, the alphabetically last status counts, so `complete` means all days. */
export async function statusBy(
  db: Database,
  by: "filter" | "grouping" | "project",
): Promise<Readonly<Record<string, SliceStatus>>> {
  const { rows } = await sql<SliceStatus & { readonly name: string }>`
    select distinct ${sql.ref(by)} as name, status, error from bi.coverage order by status
  `.execute(db);
  return Object.fromEntries(rows.map(({ name, ...status }) => [name, status]));
}

/** Holds the answers to these requests until `release` is called. `begun` resolves when the first such request arrives. */
export function hold(emulator: Emulator, isHeld: (request: SeenRequest) => boolean) {
  const begun = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  emulator.fault = (request) => {
    if (!isHeld(request)) return undefined;
    begun.resolve();
    return { kind: "hold", until: released.promise };
  };
  return { begun: begun.promise, release: released.resolve };
}

/** Waits until request `number` (from 1) reaches the service. It and later requests are not answered until the returned function is called. */
export async function holdAnswersFrom(emulator: Emulator, number: number): Promise<() => void> {
  const { begun, release } = hold(emulator, () => emulator.requests.length >= number);
  await begun;
  return release;
}
