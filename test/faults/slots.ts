// One export with a series (a slot) for each name, so that each of its requests can be answered differently. The service knows the
// slot's name from the request's `accessor`.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { sql } from "kysely";
import { type Database, openPostgres } from "../../src/db/connection/database.ts";
import { copyDatabase } from "../support/database.ts";
import { type Program, type ProgramResult, startProgram } from "../support/program.ts";

export const KEY = "0123456789abcdef0123456789abcdef01234567";
const RUN_MS_MAX = 300_000;

type SlotState = {
  readonly status: string;
  readonly error: string | null;
  /** The visible number of requests. */
  readonly requests: string | null;
};

export type Slots = AsyncDisposable & {
  readonly db: Database;
  readonly folder: string;
  readonly start: (env?: Readonly<Record<string, string>>) => Program;
  readonly run: (env?: Readonly<Record<string, string>>) => Promise<ProgramResult>;
  readonly states: () => Promise<ReadonlyMap<string, SlotState>>;
};

export type SlotsOptions = {
  readonly serviceUrl: string;
  readonly names: readonly string[];
  readonly service?: Readonly<Record<string, unknown>>;
};

export async function openSlots({ serviceUrl, names, service }: SlotsOptions): Promise<Slots> {
  await using opened = new AsyncDisposableStack();
  const { url } = opened.use(await copyDatabase());
  const db = opened.adopt(openPostgres(url), (open) => open.destroy());
  const folder = await mkdtemp(path.join(tmpdir(), "usage-export-faults-"));
  opened.defer(() => rm(folder, { recursive: true }));
  const config = {
    service: { baseUrl: serviceUrl, requestsPerSecond: 100, maxConcurrent: 64, ...service },
    projects: [{ id: "p1", name: "p1", key: { env: "USAGE_EXPORT_KEY" } }],
    exports: [
      {
        name: "slots",
        schedule: "15 2 * * *",
        projects: ["p1"],
        window: { days: 1 },
        groupings: ["none"],
        // The filters only tell the slots apart, and each answer is made up.
        checkFeatures: "off",
        filters: names.map((name) => ({ name, dimensions: { accessor: name } })),
      },
    ],
  };
  await writeFile(path.join(folder, "jobs.config.json"), JSON.stringify(config));
  const start: Slots["start"] = (env) =>
    startProgram(["export"], {
      env: { DATABASE_URL: url, USAGE_EXPORT_KEY: KEY, ...env },
      cwd: folder,
      timeoutMs: RUN_MS_MAX,
    });
  const all = opened.move();
  return {
    db,
    folder,
    start,
    run: (env) => start(env).ended,
    states: () => states(db),
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

async function states(db: Database): Promise<ReadonlyMap<string, SlotState>> {
  const { rows } = await sql<SlotState & { readonly filter: string }>`
    select c.filter, c.status, c.error, u.requests::text from bi.coverage c
    left join bi.usage_filtered u using (project, filter, usage_date)
  `.execute(db);
  return new Map(rows.map(({ filter, ...state }) => [filter, state]));
}

/** Undefined for a request that is not for a breakdown; the tests answer it with 404. */
export function slotOf(target: string): string | undefined {
  const { pathname, searchParams } = new URL(target, "http://service");
  return pathname.endsWith("/breakdown") ? (searchParams.get("accessor") ?? undefined) : undefined;
}

export function soundBody(target: string, requests: number): string {
  const { searchParams } = new URL(target, "http://service");
  const window = { start: searchParams.get("start"), end: searchParams.get("end") };
  return JSON.stringify({ ...window, results: [{ requests, grouping: window }] });
}
