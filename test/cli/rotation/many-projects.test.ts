// A rotation of many projects: each has its keys, ledger, runs and file, and people see one rotation.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { PROGRAM, type RotationContext, rotationTest } from "./rotation-context.ts";

const FIRST_KEYS = Array.from({ length: 6 }, (_, i) => ({
  secret: `first-key-of-project-${i}-`.padEnd(40, "x"),
  projectId: `p${i}`,
  scopes: ["member"],
}));

const test = await rotationTest({ emulator: { consoleKeys: FIRST_KEYS } });

type Fleet = { readonly rotation?: object; readonly count?: number };

/** Projects p0, p1 … named north-0, north-1 …, each with a first key in a file of its own, and the rotation "fleet" of all of them. */
async function configureFleet(context: RotationContext, { rotation = {}, count = FIRST_KEYS.length }: Fleet = {}) {
  const { configure, folder, proxy, sinks } = context;
  mkdirSync(path.join(folder, "first"), { recursive: true, mode: 0o700 });
  const chosen = FIRST_KEYS.slice(0, count);
  for (const { projectId, secret } of chosen) {
    writeFileSync(path.join(folder, "first", projectId), secret);
    sinks.push(path.join(folder, "first", projectId), path.join(folder, "out", `${projectId}.key`));
  }
  await configure(
    {},
    {
      service: { baseUrl: proxy.urlOf(PROGRAM), dialect: "interface", requestsPerSecond: 200 },
      projects: chosen.map(({ projectId }, i) => ({
        id: projectId,
        name: `north-${i}`,
        key: { rotation: "fleet", first: { file: "first/{id}" } },
      })),
      exports: [],
      // Each of several workers listens.
      monitor: { port: 0 },
      rotations: [
        {
          ...{ name: "fleet", schedule: "* * * * *", projects: ["north-*"] },
          ...{ comment: "exporter", scopes: ["member"], deliver: [{ file: "out/{id}.key" }], ...rotation },
        },
      ],
    },
  );
}

/** By project, the ids of the keys that were created. */
function createdBy({ emulator }: RotationContext): Readonly<Record<string, number>> {
  const created = emulator.keys().filter(({ origin }) => origin === "created");
  return Object.fromEntries(
    [...Map.groupBy(created, ({ projectId }) => projectId)].sort().map(([project, keys]) => [project, keys.length]),
  );
}

const ONE_EACH = Object.fromEntries(FIRST_KEYS.map(({ projectId }) => [projectId, 1]));

test("workers make one key for each project that is due at one moment, each in its own ledger and file, in one run", async ({
  context,
}) => {
  await configureFleet(context);
  const workers = [context.start(["start"]), context.start(["start"])];
  await expect.poll(() => createdBy(context)).toEqual(ONE_EACH);
  const active = () =>
    sql<{ rotation: string }>`select rotation from bi.api_keys where state = 'active' order by rotation`
      .execute(context.db)
      .then(({ rows }) => rows.map(({ rotation }) => rotation));
  await expect.poll(active).toEqual(FIRST_KEYS.map(({ projectId }) => `fleet/${projectId}`));
  for (const { projectId } of FIRST_KEYS) {
    const delivered = readFileSync(path.join(context.folder, "out", `${projectId}.key`), "utf8").trim();
    expect(context.emulator.secretWorks(delivered)).toBe(true);
  }
  for (const worker of workers) worker.kill("SIGTERM");
  await Promise.all(workers.map(({ ended }) => ended));
  expect(createdBy(context)).toEqual(ONE_EACH);
  const { rows } = await sql`
    select job, count(*)::integer as projects from usage_export.run join usage_export.run_project p using (run_id)
    where trigger = 'catchup' or trigger = 'schedule' group by run_id order by started_at limit 1
  `.execute(context.db);
  expect(rows).toEqual([{ job: "fleet", projects: FIRST_KEYS.length }]);
});

test("rotate handles all projects, or those that are named, and keys shows them below one name", async ({
  context,
}) => {
  await configureFleet(context, { count: 3 });
  const one = await context.run(["rotate", "--job", "fleet", "--project", "north-1"]);
  expect(one.stdout).toMatch(/^fleet, project north-1\n {2}create: /);
  expect(createdBy(context)).toEqual({ p1: 1 });
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(createdBy(context)).toEqual({ p0: 1, p1: 1, p2: 1 });

  const keys = await context.run(["keys"]);
  expect(keys.stdout).toMatch(
    /^fleet, 3 projects\n {2}north-0: active .*\n {2}north-1: active .*\n {2}north-2: active /,
  );
  const answer = await context.run(["keys", "--json"]);
  expect(JSON.parse(answer.stdout).keys).toMatchObject([
    { rotation: "fleet", ledgerName: "fleet/p0", project: "north-0", projectId: "p0" },
    { rotation: "fleet", ledgerName: "fleet/p1", project: "north-1", projectId: "p1" },
    { rotation: "fleet", ledgerName: "fleet/p2", project: "north-2", projectId: "p2" },
  ]);
  const unknown = await context.run(["rotate", "--project", "north-9"]);
  expect(unknown.stderr).toContain('no chosen rotation is for the project "north-9"');
  expect(unknown.status).toBe(2);
});

test("a project without a key fails alone, and status has one line about the rotation", async ({ context }) => {
  await configureFleet(context, { count: 4 });
  for (const id of ["p1", "p3"]) writeFileSync(path.join(context.folder, "first", id), "a-key-that-nobody-knows");
  const run = await context.run(["rotate", "--json"]);
  expect(run.status).toBe(1);
  const statuses = JSON.parse(run.stdout).map(({ project, status }: Record<string, string>) => `${project} ${status}`);
  expect(statuses).toEqual(["north-0 ok", "north-1 failed", "north-2 ok", "north-3 failed"]);
  expect(createdBy(context)).toEqual({ p0: 1, p2: 1 });

  const { stdout } = await context.run(["status"]);
  const alerts = stdout.split("\n").filter((line) => /^ {2}rotation /.test(line));
  expect(alerts).toEqual([
    expect.stringMatching(
      /^ {2}rotation fleet: 1 failed attempt, the last: .*; in 2 of 4 projects \(north-1, north-3\)$/,
    ),
  ]);
  expect(stdout).toContain("rotation fleet of 4 projects (* * * * * UTC)");
  expect(stdout).toContain("rotation fleet: 2 keys of 4 projects, 0 days old at most");
  const { jobs, rotations } = JSON.parse((await context.run(["status", "--json"])).stdout);
  expect(jobs).toMatchObject([{ kind: "rotation", job: "fleet", projects: 4, lastRun: { status: "failed" } }]);
  expect(rotations).toMatchObject([{ rotation: "fleet", projects: 4 }]);
});

test("a run of rotate records how each of its projects ended", async ({ context }) => {
  await configureFleet(context, { count: 3 });
  writeFileSync(path.join(context.folder, "first", "p1"), "a-key-that-nobody-knows");
  expect((await context.run(["rotate", "--project", "north-0", "--project", "north-1"])).status).toBe(1);
  const { rows } = await sql<{ project: string; isOk: boolean }>`
    select project_id as project, finished_at is not null and error is null as "isOk" from usage_export.run_project order by 1
  `.execute(context.db);
  expect(rows).toEqual([
    { project: "p0", isOk: true },
    { project: "p1", isOk: false },
  ]);
});

test("a project that is renamed keeps its keys", async ({ context }) => {
  await configureFleet(context, { count: 2 });
  expect((await context.run(["rotate"])).status).toBe(0);
  const file = path.join(context.folder, "jobs.config.json");
  writeFileSync(file, readFileSync(file, "utf8").replace('"name":"north-0"', '"name":"north-east"'));
  const run = await context.run(["rotate"]);
  expect(run.stdout).toMatch(/^fleet, project north-east\n {2}the active key is 0 days old/);
  expect(createdBy(context)).toEqual({ p0: 1, p1: 1 });
});
