// Helpers for tests of the worker: configurations, and the stored runs and coverage.

import { sql } from "kysely";
import { expect } from "vitest";
import type { Database } from "../../src/db/connection/database.ts";
import type { Emulator, EmulatorOptions } from "../support/emulator.ts";
import type { ProgramContext } from "./program-context.ts";
import { smallConfig } from "./small-config.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A schedule whose last run was due about twelve hours ago, and whose next one is due in about twelve hours. */
export function farSchedule(now = new Date()): string {
  return `30 ${(now.getUTCHours() + 12) % 24} * * *`;
}

/** Starts the emulator, and writes a configuration of workers that call it, with the monitor on a free port. */
export async function serveAndConfigure(
  context: ProgramContext,
  part: { readonly service?: Fields; readonly exports?: readonly Fields[]; readonly rest?: Fields } = {},
  options: Partial<EmulatorOptions> = {},
): Promise<Emulator> {
  const emulator = await context.serve(options);
  const exports = (part.exports ?? [{}]).map((job) => ({ schedule: farSchedule(), ...job }));
  const config = smallConfig(emulator.url, { ...(part.service && { service: part.service }), exports });
  await context.configure({ ...config, monitor: { port: 0 }, ...part.rest });
  return emulator;
}

/** Filters that each select a different accessor, for a test with many series. */
export function manyFilters(count: number): readonly Fields[] {
  return Array.from({ length: count }, (_, i) => ({
    name: `accessor ${i}`,
    dimensions: { accessor: `accessor-${i}` },
  }));
}

export type Run = {
  readonly job: string;
  readonly kind: string;
  readonly trigger: string;
  readonly status: string;
  readonly requests: number;
  readonly planned: number;
  readonly complete: number;
  readonly stale: number;
  readonly failed: number;
};

export async function runs(db: Database): Promise<readonly Run[]> {
  const { rows } = await sql<Run>`
    select job, kind, trigger, status, requests, slices_planned as planned, slices_complete as complete, slices_stale as stale,
      slices_failed as failed
    from bi.runs order by started_at, job
  `.execute(db);
  return rows;
}

/** Waits until `count` runs have ended, and returns them. */
export async function waitForRuns(db: Database, count: number): Promise<readonly Run[]> {
  const over = async () => (await runs(db)).filter(({ status }) => !["running", "interrupted"].includes(status));
  await expect.poll(async () => (await over()).length).toBeGreaterThanOrEqual(count);
  return over();
}

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
  const worker = context.start(["start"], { LOG_LEVEL: "debug" });
  await worker.waitFor("tick finished");
  const working = async () => (await runs(db)).filter(({ status }) => status === "running").length;
  await expect.poll(working).toBe(0);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
}
