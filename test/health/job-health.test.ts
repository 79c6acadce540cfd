// Which runs decide the health of a job.

import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { readAtOneMoment } from "../../src/db/connection/transaction.ts";
import { jobHealth } from "../../src/facts/jobs.ts";
import { smallConfig } from "../cli/small-config.ts";
import { parse } from "../config/sample-config.ts";
import { testDatabase } from "../support/database.ts";
import { makeProject } from "./sample-health-state.ts";

const { db } = await testDatabase();

type Run = readonly [trigger: string, status: string, part?: { readonly suspect?: number; readonly error?: string }];

/** The health of a new job with these runs, oldest first, whose project has `failed` failed slices. */
async function healthAfter(runs: readonly Run[], failed = 0) {
  const name = `job-${randomUUID()}`;
  for (const [i, [trigger, status, { suspect = 0, error = null } = {}]] of runs.entries()) {
    await sql`
      with run as (
        insert into usage_export.run (run_id, kind, job, trigger, status, started_at, finished_at, error)
        values (${randomUUID()}, 'export', ${name}, ${trigger}, ${status}, now() + make_interval(secs => ${i}), now(), ${error}) returning run_id
      )
      insert into usage_export.run_project (run_id, project_id, slices_planned, slices_suspect) select run_id, 'p', 1, ${suspect} from run
    `.execute(db);
  }
  const config = parse(smallConfig("http://127.0.0.1:1", { exports: [{ name }] }));
  const projects = [makeProject({ projectId: config.projects[0]?.id ?? "", failed })];
  const [health] = await readAtOneMoment(db, (tx) => jobHealth(tx, config, projects, new Date()));
  return health;
}

test("a job that never ran has no run, no failure and no success", async () => {
  const none = { lastRun: undefined, failedRun: undefined, mayReadMissing: false, lastSuccess: null };
  expect(await healthAfter([])).toMatchObject(none);
});

test("the newest run is the last one", async () => {
  expect(
    await healthAfter([
      ["schedule", "ok"],
      ["manual", "failed", { error: "no" }],
    ]),
  ).toMatchObject({
    lastRun: { trigger: "manual", status: "failed", error: "no" },
    failedRun: { status: "failed", trigger: "manual", error: "no", isExplained: false },
    lastSuccess: expect.any(Number),
  });
});

test.each<[string, Run]>([
  ["a failed backfill", ["backfill", "failed"]],
  ["a stopped run", ["schedule", "stopped"]],
  ["a run that has not ended", ["manual", "running"]],
])("%s neither makes a job fail nor ends its failure", async (_, run) => {
  expect(await healthAfter([["manual", "ok"], run])).toMatchObject({ failedRun: undefined });
  expect(await healthAfter([["manual", "failed"], run])).toMatchObject({ failedRun: { trigger: "manual" } });
});

test("a manual run ends only the failures of its own projects", async () => {
  const rotation = { name: "fleet", schedule: "0 4 * * *", projects: ["*"], comment: "c", scopes: ["keys:write"] };
  const projects = ["p", "q"].map((id) => ({ id, name: id, key: { env: "KEY" } }));
  const config = parse({ ...smallConfig("http://127.0.0.1:1", { projects, exports: [] }), rotations: [rotation] });
  /** By project, its error; null if the run was good for the project. */
  type Errors = Readonly<Record<string, string | null>>;
  const failureAfter = async (trigger: string, errors: Errors, scheduledFor: string | null = null) => {
    const error = Object.values(errors).find((one) => one !== null) ?? null;
    await sql`
      with run as (
        insert into usage_export.run (run_id, kind, job, trigger, status, scheduled_for, started_at, finished_at, error)
        values (${randomUUID()}, 'rotation', 'fleet', ${trigger}, ${error === null ? "ok" : "failed"}, ${scheduledFor}, clock_timestamp(), now(), ${error})
        returning run_id
      )
      insert into usage_export.run_project (run_id, project_id, slices_planned, finished_at, error)
      select run_id, p.key, 0, now(), p.value from run, jsonb_each_text(${JSON.stringify(errors)}::jsonb) p
    `.execute(db);
    const jobs = await readAtOneMoment(db, (tx) => jobHealth(tx, config, [], new Date()));
    return jobs.find(({ kind }) => kind === "rotation")?.failedRun?.error;
  };
  expect(await failureAfter("schedule", { p: "no", q: null }, "2026-03-01T04:00:00Z")).toBe("no");
  expect(await failureAfter("manual", { q: null })).toBe("no");
  expect(await failureAfter("catchup", { new: null })).toBe("no");
  expect(await failureAfter("manual", { p: null })).toBeUndefined();
  // A project that is no longer configured does not have to end well.
  expect(await failureAfter("schedule", { gone: "no", q: null }, "2026-03-02T04:00:00Z")).toBe("no");
  expect(await failureAfter("manual", { q: null })).toBeUndefined();
  expect(await failureAfter("schedule", { q: null }, "2026-03-03T04:00:00Z")).toBeUndefined();
});

test("suspect slices explain a failed run only if it has no error", async () => {
  const isExplained = async (part: NonNullable<Run[2]>, failed?: number) =>
    (await healthAfter([["schedule", "failed", part]], failed))?.failedRun?.isExplained;
  expect(await isExplained({ error: "no" }, 1)).toBe(true);
  expect(await isExplained({ suspect: 1 })).toBe(true);
  expect(await isExplained({ suspect: 1, error: "no" })).toBe(false);
});

test("a run in progress may read what is missing in its first two hours", async () => {
  await sql`insert into usage_export.run (run_id, kind, job, trigger, status, started_at, heartbeat_at)
    select gen_random_uuid(), 'export', job, trigger, status, now() - age::interval, now()
    from (values
      ('begun', 'schedule', '110 minutes', 'running'), ('long', 'backfill', '3 hours', 'running')
    ) as v (job, trigger, age, status)
  `.execute(db);
  const names = ["begun", "long", "idle"];
  await sql`insert into usage_export.job (kind, name, scheduled_through)
    select 'export', name, now() - interval '3 days' from unnest(${names}::text[]) as name`.execute(db);
  const config = parse(smallConfig("http://127.0.0.1:1", { exports: names.map((name) => ({ name })) }));
  const jobs = await readAtOneMoment(db, (tx) => jobHealth(tx, config, [], new Date()));
  expect(jobs.map(({ job, mayReadMissing, overdueSince }) => [job, mayReadMissing, overdueSince])).toEqual([
    ["begun", true, undefined],
    ["long", false, undefined],
    ["idle", false, expect.any(Date)],
  ]);
});
