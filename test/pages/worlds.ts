// Worlds: what the database may hold when a person opens the pages, such as a demo, many projects, an outage, or nothing.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { type Config, parseConfig } from "../../src/config/config.ts";
import type { Database } from "../../src/db/connection/database.ts";
import { storeBudgets, storePrices } from "../../src/db/prices-and-budgets.ts";
import { storeListedKeys } from "../../src/db/project-facts.ts";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { registerSeries, seriesIdOf } from "../../src/db/usage/stored-series.ts";
import { type Day, daysOf } from "../../src/usage/days.ts";
import { configuredSeries } from "../../src/usage/export-plan.ts";
import type { NormalisedSlice } from "../../src/usage/normalise.ts";
import type { Series } from "../../src/usage/series.ts";
import { type BilledRow, billed } from "../db/stored-billing.ts";
import { daysBack, nextFetchNo, rowOf, setDue, sliceOn, store, total } from "../db/stored-usage.ts";

const DAYS = 75;
const WINDOW_DAYS = 7;
const PRICE_PER_HOUR = 0.26;
const REASON = "GET /v1/projects/:id/usage/breakdown: the service answered 503 (3 attempts)";

type World = {
  readonly projects: readonly string[];
  readonly models: readonly string[];
  /** How many of the models a project uses. */
  readonly modelsUsed: number;
  readonly billing?: boolean;
  /** How many of the newest days could not be read, in every project. */
  readonly failedDays?: number;
  readonly exported?: boolean;
  /** More fields of the configuration. */
  readonly rest?: object;
};

const MODELS = ["nova-3", "nova-3-medical", "nova-2", "flux-general-en", "aura-2", "whisper-large"];
const PROJECTS = ["Call Centre US", "Call Centre EU", "Meeting Notes", "Voice Agents", "Captions", "QA", "Research"];
const LONG = "Customer Experience Analytics – Contact Centre Transcription";
const LARGE: World = {
  projects: Array.from({ length: 60 }, (_, i) => `${LONG} (region ${i + 1})`),
  models: Array.from({ length: 120 }, (_, i) => `${MODELS[i % MODELS.length]}-custom-tenant-${i}`),
  modelsUsed: 5,
  rest: {
    prices: [{ metric: "hours", model: "*", currency: "USD", price: String(PRICE_PER_HOUR), from: "2020-01-01" }],
  },
};

const BUDGETS = [
  { name: "everything", metric: "cost", currency: "USD", amount: 60_000, period: "month" },
  { name: "call centres", metric: "cost", currency: "USD", amount: 20_000, period: "month", project: "Call Centre US" },
  { name: "research hours", metric: "hours", amount: 9_000, period: "month", project: "Research" },
];

export const WORLDS: Readonly<Record<string, World>> = {
  demo: { projects: ["production"], models: MODELS, modelsUsed: 6, billing: true },
  cost: {
    ...{ projects: [...PROJECTS, "Sandbox"], models: MODELS, modelsUsed: 4, billing: true },
    rest: { ...LARGE.rest, budgets: BUDGETS },
  },
  large: LARGE,
  outage: { ...LARGE, failedDays: 3 },
  unreached: { projects: PROJECTS.slice(0, 2), models: MODELS, modelsUsed: 2, failedDays: DAYS },
  empty: { projects: PROJECTS.slice(0, 2), models: MODELS, modelsUsed: 2, exported: false },
};

/** Stores a world, and returns its configuration. */
export async function storeWorld(db: Database, world: World): Promise<Config> {
  const config = parseConfig(JSON.stringify(configOf(world)), "world", "/");
  await storePrices(db, config.prices);
  await storeBudgets(db, config.budgets);
  if (world.exported === false) return config;
  const { failedDays = 0 } = world;
  const all = configuredSeries(config.exports);
  const ids = await registerSeries(db, all);
  const back = await daysBack(db);
  const due = { start: back(DAYS), end: back(1) };
  for (const { series } of all) {
    const seriesId = seriesIdOf(ids, series);
    await setDue(db, [seriesId], due.start, due.end);
    const days = daysOf(due);
    const slices = days.slice(0, DAYS - failedDays).map((day, i) => sliceOf(world, series, day, i));
    if (slices.length > 0) await store(db, seriesId, slices, { grouping: series.grouping });
    const failed = days.slice(DAYS - failedDays);
    if (failed.length > 0)
      await recordFailure(db, {
        ...{ seriesId, days: failed, fetchNo: await nextFetchNo(db), reason: REASON, code: "unavailable" },
      });
  }
  await sql`analyze`.execute(db);
  for (const { id } of config.projects) {
    const keys = KEYS.map((key) => keyOf(id, key));
    await storeListedKeys(db, id, keys);
  }
  await storeNights(db, config, failedDays);
  return config;
}

const NIGHTS = 14;
const GROUPINGS = ["none", "model", "accessor", "tags"];

/** Stores a worker that ran every job each night at 02:15 (after 135 minutes). In the newest `failedDays` nights the runs failed. */
async function storeNights(db: Database, { exports, projects }: Config, failedDays: number): Promise<void> {
  const slices = GROUPINGS.length * WINDOW_DAYS;
  await sql`
    insert into usage_export.worker (worker_id, host, pid, version) values (gen_random_uuid(), 'worker-1', 42, '1.0.0')
  `.execute(db);
  for (const { name } of exports)
    await sql`
      with run as (
        insert into usage_export.run (run_id, kind, job, trigger, started_at, finished_at, status)
        select gen_random_uuid(), 'export', ${name}, 'schedule', at, at + night * interval '2 s' + interval '70 s',
          case when night <= ${failedDays} then 'failed' else 'ok' end
        from generate_series(1, ${NIGHTS}::integer) as night
        cross join lateral (select date_trunc('day', now(), 'UTC') + interval '135 minutes' - (night - 1) * interval '1 day' as at) started
        returning *
      )
      insert into usage_export.run_project
        (run_id, project_id, finished_at, requests, slices_planned, slices_complete, slices_failed, rows_changed, error)
      select run_id, project_id, finished_at, ${GROUPINGS.length}::integer, ${slices}::integer, case when status = 'ok' then ${slices}::integer else 0 end,
        case when status = 'ok' then 0 else ${slices}::integer end, case when status = 'ok' then 40 else 0 end,
        case when status <> 'ok' then ${REASON}::text end
      from run cross join unnest(${projects.map(({ id }) => id)}::text[]) as project_id
    `.execute(db);
  await sql`
    update usage_export.slice set failing_since = usage_date + interval '1 day 135 minutes' where failing_since is not null
  `.execute(db);
}

const KEYS = ["agent-production", "batch", "web demo"];

function keyOf(projectId: string, comment: string) {
  return { apiKeyId: `${projectId.slice(0, 13)}-${comment.length}`, comment, scopes: ["member"] };
}

function configOf({ projects, billing, rest }: World) {
  const common = { schedule: "15 2 * * *", projects, window: { days: WINDOW_DAYS } };
  const bills = { ...common, name: "costs", source: "billing", groupings: ["none", "line_item", "accessor"] };
  return {
    service: { baseUrl: "https://api.example.com" },
    projects: projects.map((name) => ({ id: randomUUID(), name, key: { env: "KEY" } })),
    exports: [{ ...common, name: "nightly", groupings: GROUPINGS }, ...(billing ? [bills] : [])],
    ...rest,
  };
}

/** A project's hours by model on day `i`. Those of the first project are more than doubled for the last 24 days. */
function hoursOf({ projects, models, modelsUsed }: World, project: string, i: number): readonly [string, number][] {
  const projectNo = projects.indexOf(project);
  const usual = 900 / (projectNo + 1);
  const weekday = i % 7 < 5 ? 1 : 0.35;
  const growth = 1 + i / 300;
  const runaway = projectNo === 0 && i > DAYS - 25 ? 2.2 : 1;
  const noise = 1 + ((i * 37 + projectNo * 11) % 17) / 100;
  const largest = usual * weekday * growth * runaway * noise;
  // Multiples of 6, so that every split below has whole requests and adds up exactly.
  const hours = (n: number) => Math.round(largest / (n + 1) / 6) * 6;
  return Array.from({ length: modelsUsed }, (_, n) => [models[(projectNo * 2 + n) % models.length] ?? "", hours(n)]);
}

function sliceOf(world: World, { project, source, grouping }: Series, day: Day, i: number): NormalisedSlice {
  const models = hoursOf(world, project.name, i);
  const sum = models.reduce((all, [, hours]) => all + hours, 0);
  const parts: Readonly<Record<string, readonly (readonly [unknown, number])[]>> = {
    model: models,
    line_item: models.map(([model, hours]) => [`streaming::${model}`, hours]),
    accessor: KEYS.map((key, n) => [keyOf(project.id, key).apiKeyId, (sum * (7 - 3 * n)) / 12]),
    tags: [
      [["production"], sum * 0.8],
      [["staging", "batch"], sum * 0.2],
    ],
    none: [[null, sum]],
  };
  const rows = parts[grouping] ?? [];
  if (source === "billing") {
    const dollars = (hours: number) => (hours * PRICE_PER_HOUR).toFixed(4);
    const dimensions = (value: unknown) => (grouping === "none" ? {} : { [grouping]: value });
    const charges = rows.map(([value, hours]): BilledRow => [dollars(hours), dimensions(value)]);
    return billed(day, grouping, charges);
  }
  const numbers = (hours: number) => ({
    ...{ hours: hours.toFixed(3), total_hours: (hours * 1.1).toFixed(3), requests: String(Math.round(hours * 20)) },
    ...{ tokens_in: String(Math.round(hours * 1800)), tokens_out: String(Math.round(hours * 300)) },
  });
  if (grouping === "none") return total(day, numbers(sum));
  return sliceOn(
    day,
    rows.map(([value, hours]) => rowOf(value, numbers(hours), null, grouping)),
  );
}
