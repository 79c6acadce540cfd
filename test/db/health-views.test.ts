// The health state and the views are computed by different queries. This test compares them on random data, also for
// series whose due_from is after due_through, as after a clock was set back.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { registerSeries } from "../../src/db/usage/stored-series.ts";
import { health as readHealth } from "../../src/facts/health.ts";
import { testDatabase } from "../support/database.ts";
import { configured, newProject } from "./stored-usage.ts";

const { db } = await testDatabase();

const CONFIG = parseConfig(
  JSON.stringify({
    service: { baseUrl: "http://127.0.0.1:1" },
    projects: [{ id: "p", name: "production", key: { env: "KEY" } }],
  }),
  { source: "jobs.config.json", baseDir: "/srv" },
);

test("counts, gaps and freshness are those of the views, whatever is stored", async () => {
  const series = Array.from({ length: 150 }, (_, i) =>
    configured(newProject(), "endpoint", { windowDays: 1 + (i % 4) }),
  );
  await registerSeries(db, series);
  await sql`select setseed(0.42)`.execute(db);
  await sql`
    update usage_export.series set
      due_from = case when random() < 0.85 then current_date - (1 + random() * 12)::integer end,
      due_through = current_date - (random() * 4)::integer,
      next_due_at = case when random() < 0.8 then now() + (random() - 0.5) * interval '2 days' end,
      window_days = case when random() < 0.7 then window_days end,
      undated_since = case when random() < 0.1 then now() end,
      retired_at = case when random() < 0.15 then now() end,
      superseded_at = case when random() < 0.1 then now() end
  `.execute(db);
  await sql`
    insert into usage_export.slice (series_id, usage_date, status, fetch_no, fetched_at, closed_at, content_hash, rows, error)
    select series_id, day, status, case when fetched then 1 else 0 end, case when fetched then now() - interval '3 hours' end,
      case when fetched and closed then now() end, case when fetched then '' end, 1,
      case when status <> 'complete' and error then 'down' end
    from (
      select series_id, day::date, fetched or status <> 'failed' as fetched, closed, error, status
      from (
        select s.series_id, day, random() < 0.8 as fetched, random() < 0.7 as closed, random() < 0.8 as error,
          (array['complete', 'complete', 'complete', 'failed', 'suspect'])[1 + floor(random() * 5)::integer] as status
        from usage_export.series s
        cross join generate_series(current_date - 15, current_date, interval '1 day') as day
        where random() < 0.75
      ) made
    ) made
  `.execute(db);
  const health = await readHealth(db, CONFIG);
  const { rows: counts } = await sql<{ status: string; slices: number }>`
    select status, count(*)::integer as slices from bi.coverage where status <> 'undated' group by status
  `.execute(db);
  expect(health.slices).toEqual(Object.fromEntries(counts.map(({ status, slices }) => [status, slices])));
  const { rows: fresh } = await sql<{ project: string; day: string }>`
    select s.project, s.fresh_through as day from bi.freshness s where s.due_from is not null
  `.execute(db);
  const freshThrough = new Map(health.projects.map((one) => [one.project, one.freshThrough]));
  expect(fresh.map(({ project }) => ({ project, day: freshThrough.get(project) }))).toEqual(fresh);
});
