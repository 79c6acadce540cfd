// A rotation of many projects, some of them discovered: each has its keys, ledger, runs and file, and people see one rotation.

import { readFileSync, writeFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { accountOptions, completeSlices, dueProjects, expireProjectList } from "../account.ts";
import { type RotationContext, rotationTest } from "./rotation-context.ts";

const ACCOUNT_KEY = "key-of-the-account-".padEnd(40, "x");
const FIRST_KEYS = Array.from({ length: 6 }, (_, i) => ({
  secret: `first-key-of-project-${i}-`.padEnd(40, "x"),
  projectId: `p${i}`,
  scopes: ["member"],
}));
const ACCOUNT = { env: "ACCOUNT_KEY" };

/** The names of the listed projects by their ids. A test changes them. */
const names = new Map<string, string>();

const account = accountOptions(names, ACCOUNT_KEY);
const test = await rotationTest({ emulator: { ...account, consoleKeys: [...FIRST_KEYS, ...account.consoleKeys] } });

const isList = (url: string) => /^\/v1\/projects(?:$|\?)/.test(url);
const keyFile = ({ folder }: RotationContext, id: string) => path.join(folder, "keys", id);
const deliveredSecret = (context: RotationContext, id: string) => readFileSync(keyFile(context, id), "utf8").trim();

async function configure(context: RotationContext, rest: Readonly<Record<string, unknown>>) {
  await mkdir(path.join(context.folder, "keys"), { recursive: true, mode: 0o700 });
  // Several workers run at once, so each needs a free port.
  await context.configure({}, { exports: [], monitor: { port: 0 }, ...rest });
}

function fleetRotation(part: object) {
  const common = { schedule: "* * * * *", projects: ["*"], comment: "exporter", scopes: ["member"] };
  return { name: "fleet", ...common, deliver: [{ file: "keys/{id}" }], ...part };
}

/** Projects p0, p1 … named north-0, north-1 …, each with a first key in a file of its own, and the rotation "fleet" of all of them. */
async function configureNorth(context: RotationContext, count = FIRST_KEYS.length) {
  const chosen = FIRST_KEYS.slice(0, count);
  const key = { rotation: "fleet", first: { file: "first-{id}" } };
  const projects = chosen.map(({ projectId }, i) => ({ id: projectId, name: `north-${i}`, key }));
  await configure(context, { projects, rotations: [fleetRotation({ projects: ["north-*"] })] });
  for (const { projectId, secret } of chosen) {
    writeFileSync(path.join(context.folder, `first-${projectId}`), secret);
    context.allowedFiles.push(keyFile(context, projectId));
  }
}

/** Projects a and b of an account are discovered, and read with the keys that the rotation makes for them. */
async function configureAccount(context: RotationContext, schedule: string, exports: readonly object[] = []) {
  names.clear();
  names.set("a", "alpha").set("b", "beta");
  for (const id of ["a", "b", "c"]) context.allowedFiles.push(keyFile(context, id));
  const projects = [{ discover: true, key: ACCOUNT, projectKey: { file: "keys/{id}" } }];
  await configure(context, { projects, exports, rotations: [fleetRotation({ schedule, createWith: ACCOUNT })] });
  const env = { ACCOUNT_KEY, USAGE_EXPORT_KEY: undefined };
  return { env, run: (...args: readonly string[]) => context.run(args, env) };
}

/** The number of created keys of each project, by its id. */
function createdBy({ emulator }: RotationContext): Readonly<Record<string, number>> {
  const created = emulator.keys().filter(({ origin }) => origin === "created");
  return Object.fromEntries(
    [...Map.groupBy(created, ({ projectId }) => projectId)].sort().map(([project, keys]) => [project, keys.length]),
  );
}

const ONE_KEY_EACH = Object.fromEntries(FIRST_KEYS.map(({ projectId }) => [projectId, 1]));

/** Each key as its rotation, state and number in its lineage, such as "fleet/a active 2". */
async function ledger({ db }: RotationContext) {
  const { rows } = await sql<{ text: string }>`
    select concat_ws(' ', rotation, state, lineage_order) as text from bi.api_keys order by rotation, lineage_order
  `.execute(db);
  return rows.map(({ text }) => text);
}

/** How each project ended in the runs so far, such as "p1 ok". */
async function projectEnds({ db }: RotationContext) {
  const rows = await db.selectFrom("usage_export.run_project").selectAll().orderBy("project_id").execute();
  return rows.map((row) => `${row.project_id} ${row.finished_at && row.error === null ? "ok" : "failed"}`);
}

test("workers make one key for each project that is due at one moment, in one run", async ({ context }) => {
  await configureNorth(context);
  const workers = [context.work(), context.work()];
  await expect.poll(() => ledger(context)).toEqual(FIRST_KEYS.map(({ projectId }) => `fleet/${projectId} active 1`));
  for (const { projectId } of FIRST_KEYS) {
    expect(context.emulator.secretWorks(deliveredSecret(context, projectId))).toBe(true);
  }
  for (const worker of workers) worker.kill("SIGTERM");
  for (const { ended } of workers) await ended;
  expect(createdBy(context)).toEqual(ONE_KEY_EACH);
  const { rows } = await sql`
    select job, count(*)::integer as projects from usage_export.run join usage_export.run_project p using (run_id)
    where trigger = 'catchup' or trigger = 'schedule' group by run_id order by started_at limit 1
  `.execute(context.db);
  expect(rows).toEqual([{ job: "fleet", projects: FIRST_KEYS.length }]);
});

test("rotate handles all or the named projects", async ({ context }) => {
  await configureNorth(context, 3);
  const one = await context.run(["rotate", "--job", "fleet", "--project", "north-1"]);
  expect(one.stdout).toMatch(/^fleet, project north-1\n {2}create: /);
  expect(createdBy(context)).toEqual({ p1: 1 });
  expect(await projectEnds(context)).toEqual(["p1 ok"]);
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(createdBy(context)).toEqual({ p0: 1, p1: 1, p2: 1 });

  const lines = ["north-0", "north-1", "north-2"].map((name) => `\n {2}${name}: active .*`);
  expect((await context.run(["keys"])).stdout).toMatch(new RegExp(`^fleet, 3 projects${lines.join("")}`));
  expect(JSON.parse((await context.run(["keys", "--json"])).stdout).keys).toMatchObject(
    [0, 1, 2].map((i) => ({
      ...{ rotation: "fleet", ledgerName: `fleet/p${i}`, project: `north-${i}`, projectId: `p${i}` },
    })),
  );
  expect(await context.run(["rotate", "--project", "north-9"])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('no chosen rotation is for the project "north-9"'),
  });

  const file = path.join(context.folder, "jobs.config.json");
  writeFileSync(file, readFileSync(file, "utf8").replace('"name":"north-0"', '"name":"north-east"'));
  expect((await context.run(["rotate"])).stdout).toMatch(
    /^fleet, project north-east\n {2}the active key is 0 days old/,
  );
  expect(createdBy(context)).toEqual({ p0: 1, p1: 1, p2: 1 });
});

test("projects with a wrong first key fail alone", async ({ context }) => {
  await configureNorth(context, 4);
  for (const id of ["p1", "p2"]) writeFileSync(path.join(context.folder, `first-${id}`), "a-key-that-nobody-knows");
  const run = await context.run(["rotate", "--json"]);
  expect(run.status).toBe(1);
  const [ok, failed] = [
    { status: "ok", errors: [], did: expect.arrayContaining([expect.stringMatching(/^promote /)]) },
    { status: "failed", errors: [expect.any(String)] },
  ];
  expect(JSON.parse(run.stdout)).toMatchObject(
    [ok, failed, failed, ok].map((end, i) => ({ ...end, rotation: "fleet", project: `north-${i}` })),
  );
  expect(createdBy(context)).toEqual({ p0: 1, p3: 1 });
  expect(await projectEnds(context)).toEqual(["p0 ok", "p1 failed", "p2 failed", "p3 ok"]);

  const { stdout } = await context.run(["status"]);
  expect(stdout.match(/^ {2}rotation .*$/gm)).toEqual([
    expect.stringMatching(
      /^ {2}rotation fleet: 1 failed attempt, the last: .*; in 2 of 4 projects \(north-1, north-2\)$/,
    ),
  ]);
  expect(stdout).toContain("rotation fleet of 4 projects (* * * * * UTC)");
  expect(stdout).toContain("rotation fleet: 2 keys of 4 projects, 0 days old at most");
  const { jobs, rotations } = JSON.parse((await context.run(["status", "--json"])).stdout);
  expect(jobs).toMatchObject([{ kind: "rotation", job: "fleet", projects: 4, lastRun: { status: "failed" } }]);
  expect(rotations).toMatchObject([{ rotation: "fleet", projects: 4 }]);
});

test("a discovered project that vanishes or is renamed keeps its key", async ({ context }) => {
  const { db, emulator } = context;
  const nightly = { schedule: "*/3 * * * * *", projects: ["*"] };
  const { env, run } = await configureAccount(context, "*/2 * * * * *", [
    { name: "nightly", window: { days: 2 }, groupings: ["none"], ...nightly },
  ]);
  const worker = context.work(env);
  await expect.poll(() => completeSlices(db)).toEqual({ alpha: 2, beta: 2 });

  names.delete("b");
  names.set("c", "gamma").set("a", "renamed");
  await expireProjectList(db);
  await expect.poll(() => completeSlices(db)).toEqual({ renamed: 2, beta: 2, gamma: 2 });
  expect(createdBy(context)).toEqual({ a: 1, b: 1, c: 1 });
  expect(emulator.secretWorks(deliveredSecret(context, "c"))).toBe(true);
  for (const { projectId, apiKeyId } of emulator.keys().filter(({ origin }) => origin === "created")) {
    const readings = emulator.requests.filter(({ path }) => path.includes(`/${projectId}/usage/breakdown`));
    expect(new Set(readings.flatMap(({ keyId }) => keyId ?? []))).toEqual(new Set([apiKeyId]));
  }
  expect(await dueProjects(db)).toEqual(["gamma", "renamed"]);

  const status = await run("status");
  expect(status.stdout).toMatch(/^all is well/);
  expect(status.stdout).toContain("rotation fleet of 2 projects");
  expect(status.stdout).toContain("rotation fleet, projects no longer in it: 1 key of 1 projects");

  const rotated = await run("rotate", "--project", "renamed", "--now");
  expect(rotated.stdout).toMatch(/^fleet, project renamed\n {2}create: /);
  expect(await ledger(context)).toEqual([
    "fleet/a draining 1",
    "fleet/a active 2",
    "fleet/b active 1",
    "fleet/c active 1",
  ]);
  worker.kill("SIGTERM");
  expect(await worker.ended).toMatchObject({ status: 0 });
});

test("a project that appears gets its key at once, long before its rotation is due again", async ({ context }) => {
  const { env } = await configureAccount(context, "0 4 * * *");
  context.work(env);
  await expect.poll(() => createdBy(context)).toEqual({ a: 1, b: 1 });
  names.set("c", "gamma");
  await expireProjectList(context.db);
  await expect.poll(() => createdBy(context)).toEqual({ a: 1, b: 1, c: 1 });
});

test("the failures of a discovered project that is gone are no alert any more", async ({ context }) => {
  const { run } = await configureAccount(context, "0 4 * * *");
  context.emulator.fault = ({ method, path }) =>
    method === "POST" && path.startsWith("/v1/projects/b/") ? { kind: "answer", status: 403, body: "{}" } : undefined;
  const paused = await run("jobs", "pause", "fleet", "--why", "an audit");
  expect(paused.stdout).toMatch(/^rotation fleet paused since /);

  expect(await run("rotate")).toMatchObject({ status: 1 });
  expect(createdBy(context)).toEqual({ a: 1 });
  expect((await run("status")).stdout).toMatch(
    /rotation fleet: 1 failed attempt, the last: .*; in 1 of 2 projects \(beta\)/,
  );
  expect((await run("jobs")).stdout).toMatch(/^rotation fleet .*: paused since /);

  names.delete("b");
  expect(await run("rotate")).toMatchObject({ status: 0 });
  const after = await run("status");
  expect(after.stdout).not.toContain("failed attempt");
  expect(after.stdout).toMatch(/^all is well/);
});

test("rotate reads the list of projects only for rotations with patterns", async ({ context }) => {
  const { emulator } = context;
  const { run } = await configureAccount(context, "0 4 * * *");
  names.set("c", "lab");
  const forLabOnly = { project: "lab", projects: undefined, deliver: [{ file: "keys/c" }] };
  await configure(context, {
    projects: [
      { id: "c", name: "lab", key: ACCOUNT },
      { discover: true, key: ACCOUNT },
    ],
    rotations: [
      fleetRotation({ ...forLabOnly, name: "exporter", createWith: ACCOUNT }),
      // The pattern fits alpha and beta, but not lab.
      fleetRotation({ projects: ["*a"], createWith: ACCOUNT }),
    ],
  });
  const refuseLists: typeof emulator.fault = ({ path }) =>
    isList(path) ? { kind: "answer", status: 403, body: "{}" } : undefined;
  emulator.fault = refuseLists;
  const listCount = () => emulator.requests.filter(({ path }) => isList(path)).length;

  expect(await run("rotate", "--job", "flet")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('did you mean "fleet"?'),
  });
  // A dry run reads no list, and no project is known yet.
  expect(await run("rotate", "--job", "fleet", "--dry-run")).toMatchObject({ status: 2 });
  expect(emulator.requests).toEqual([]);

  for (const options of [[], ["--now"], ["--rollback"]]) {
    expect(await run("rotate", "--job", "exporter", ...options)).toMatchObject({ status: 0 });
  }
  expect(listCount()).toBe(0);
  const unread = await run("rotate", "--job", "fleet");
  expect(unread).toMatchObject({ status: 1, stderr: expect.stringContaining("the projects of env ACCOUNT_KEY") });

  emulator.fault = undefined;
  expect(await run("rotate", "--job", "fleet")).toMatchObject({ status: 0 });
  emulator.fault = refuseLists;
  const known = await run("rotate", "--job", "fleet", "--now");
  expect(known).toMatchObject({ status: 0, stderr: expect.stringContaining("could not be read") });
  expect(createdBy(context)).toEqual({ a: 2, b: 2, c: 2 });
  const countBefore = listCount();
  expect(await run("rotate", "--job", "fleet", "--rollback")).toMatchObject({ status: 0 });
  expect(listCount()).toBe(countBefore);
});
