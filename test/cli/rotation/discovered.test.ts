// A worker makes, delivers and uses the keys of projects that it discovers.

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { completeDays, dueProjects, FIVE_REQUESTS, listedIn, makeListOld } from "../account.ts";
import { PROGRAM, type RotationContext, rotationTest } from "./rotation-context.ts";

const ACCOUNT_KEY = "key-of-the-account-".padEnd(40, "x");
const WITHOUT_KEYS = { ACCOUNT_KEY, USAGE_EXPORT_KEY: undefined };

/** The names of the projects by their ids. A test changes them. */
const names = new Map<string, string>();

const test = await rotationTest({
  emulator: {
    consoleKeys: [{ secret: ACCOUNT_KEY, projectId: "a", scopes: ["member"], isAccountKey: true }],
    projects: () => listedIn(names),
    usage: () => FIVE_REQUESTS,
  },
});

/** Each project found is read with the key that the rotation makes for it. */
async function configureFleet(
  { configure, folder, proxy, sinks }: RotationContext,
  {
    exports = [],
    schedule = "*/2 * * * * *",
  }: { readonly exports?: readonly object[]; readonly schedule?: string } = {},
) {
  names.clear();
  names.set("a", "alpha").set("b", "beta");
  mkdirSync(path.join(folder, "keys"), { mode: 0o700 });
  for (const id of ["a", "b", "c"]) sinks.push(path.join(folder, "keys", id));
  const account = { env: "ACCOUNT_KEY" };
  const nightly = { name: "nightly", projects: ["*"], window: { days: 2 }, groupings: ["none"] };
  await configure(
    {},
    {
      service: { baseUrl: proxy.urlOf(PROGRAM), dialect: "interface", requestsPerSecond: 200 },
      projects: [{ discover: true, key: account, projectKey: { file: "keys/{id}" } }],
      exports: exports.map((job) => ({ ...nightly, ...job })),
      rotations: [
        {
          ...{ name: "fleet", schedule, projects: ["*"], createWith: account },
          ...{ comment: "exporter", scopes: ["member"], deliver: [{ file: "keys/{id}" }] },
        },
      ],
      monitor: { port: 0 },
    },
  );
}

/** By project, how many keys were created. */
function createdBy({ emulator }: RotationContext): Readonly<Record<string, number>> {
  const created = emulator.keys().filter(({ origin }) => origin === "created");
  return Object.fromEntries(
    [...Map.groupBy(created, ({ projectId }) => projectId)].sort().map(([project, keys]) => [project, keys.length]),
  );
}

/** With which keys the usage of the project was read. */
function keysThatRead({ emulator }: RotationContext, id: string): readonly string[] {
  const readings = emulator.requests.filter(({ path }) => path.startsWith(`/v1/projects/${id}/usage/breakdown`));
  return [...new Set(readings.flatMap(({ keyId }) => keyId ?? []))];
}

function delivered({ folder }: RotationContext, id: string): string {
  const file = path.join(folder, "keys", id);
  return existsSync(file) ? readFileSync(file, "utf8").trim() : "";
}

async function ledger({ db }: RotationContext) {
  const { rows } = await sql<{ text: string }>`
    select concat_ws(' ', rotation, state, lineage_order) as text from bi.api_keys order by rotation, lineage_order
  `.execute(db);
  return rows.map(({ text }) => text);
}

test("a project that appears gets a key that reads it, one that vanishes keeps its key and is due no more, and a renamed one has the same keys", async ({
  context,
}) => {
  const { db, emulator } = context;
  await configureFleet(context, { exports: [{ schedule: "*/3 * * * * *" }] });
  const worker = context.start(["start"], WITHOUT_KEYS);
  await expect.poll(() => completeDays(db)).toEqual({ alpha: 2, beta: 2 });

  names.delete("b");
  names.set("c", "gamma").set("a", "renamed");
  await makeListOld(db);
  await expect.poll(() => completeDays(db)).toEqual({ renamed: 2, beta: 2, gamma: 2 });
  expect(createdBy(context)).toEqual({ a: 1, b: 1, c: 1 });
  expect(emulator.secretWorks(delivered(context, "c"))).toBe(true);
  const idOf = (project: string) =>
    emulator.keys().find((key) => key.projectId === project && key.origin === "created");
  for (const id of ["a", "b", "c"]) expect(keysThatRead(context, id)).toEqual([idOf(id)?.apiKeyId]);
  expect(await dueProjects(db)).toEqual(["gamma", "renamed"]);

  const status = await context.run(["status"], WITHOUT_KEYS);
  expect(status.stdout).toMatch(/^all is well/);
  expect(status.stdout).toContain("rotation fleet of 2 projects");
  expect(status.stdout).toContain("rotation fleet, projects that are gone: 1 key of 1 projects");

  const rotated = await context.run(["rotate", "--project", "renamed", "--now"], WITHOUT_KEYS);
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
  await configureFleet(context, { schedule: "0 4 * * *" });
  const worker = context.start(["start"], WITHOUT_KEYS);
  await expect.poll(() => createdBy(context)).toEqual({ a: 1, b: 1 });
  names.set("c", "gamma");
  await makeListOld(context.db);

  await expect.poll(() => createdBy(context)).toEqual({ a: 1, b: 1, c: 1 });
  worker.kill("SIGTERM");
  await worker.ended;
});

test("rotate and jobs know discovered projects, and the failures of one that is gone are no alert any more", async ({
  context,
}) => {
  const { emulator, run } = context;
  await configureFleet(context);
  emulator.fault = ({ method, path }) =>
    method === "POST" && path.startsWith("/v1/projects/b/") ? { kind: "answer", status: 403, body: "{}" } : undefined;
  const paused = await run(["jobs", "pause", "fleet", "--why", "an audit"], WITHOUT_KEYS);
  expect(paused.stdout).toMatch(/^rotation fleet paused since /);

  const first = await run(["rotate"], WITHOUT_KEYS);
  expect(first).toMatchObject({ status: 1 });
  expect(createdBy(context)).toEqual({ a: 1 });
  const before = await run(["status"], WITHOUT_KEYS);
  expect(before.stdout).toMatch(/rotation fleet: 1 failed attempt, the last: .*; in 1 of 2 projects \(beta\)/);
  expect((await run(["jobs"], WITHOUT_KEYS)).stdout).toMatch(/^rotation fleet .*: paused since /);

  names.delete("b");
  expect(await run(["rotate"], WITHOUT_KEYS)).toMatchObject({ status: 0 });
  const after = await run(["status"], WITHOUT_KEYS);
  expect(after.stdout).not.toContain("failed attempts");
  expect(after.stdout).toMatch(/^all is well/);
});

test("rotate reads the list only for rotations that it may add projects to, and never to put a key back", async ({
  context,
}) => {
  const { configure, emulator, folder, proxy, run, sinks } = context;
  names.clear();
  names.set("a", "alpha").set("b", "beta").set("c", "lab");
  mkdirSync(path.join(folder, "keys"), { mode: 0o700 });
  for (const id of ["a", "b", "c"]) sinks.push(path.join(folder, "keys", id));
  const key = { env: "ACCOUNT_KEY" };
  const rotation = { schedule: "0 4 * * *", createWith: key, comment: "exporter", scopes: ["member"] };
  await configure(
    {},
    {
      service: { baseUrl: proxy.urlOf(PROGRAM), dialect: "interface", requestsPerSecond: 200 },
      projects: [
        { id: "c", name: "lab", key },
        { discover: true, key },
      ],
      exports: [],
      rotations: [
        { ...rotation, name: "exporter", project: "lab", deliver: [{ file: "keys/c" }] },
        { ...rotation, name: "fleet", projects: ["*a"], deliver: [{ file: "keys/{id}" }] },
      ],
    },
  );
  const isList = (url: string) => /^\/v1\/projects(?:$|\?)/.test(url);
  emulator.fault = ({ path }) => (isList(path) ? { kind: "answer", status: 403, body: "{}" } : undefined);
  const lists = () => emulator.requests.filter(({ path }) => isList(path)).length;

  const typo = await run(["rotate", "--job", "flet"], WITHOUT_KEYS);
  expect(typo).toMatchObject({ status: 2, stderr: expect.stringContaining('did you mean "fleet"?') });
  expect((await run(["rotate", "--now", "--rollback"], WITHOUT_KEYS)).stderr).toContain("exclude each other");
  expect(emulator.requests).toEqual([]);

  expect(await run(["rotate", "--job", "exporter"], WITHOUT_KEYS)).toMatchObject({ status: 0 });
  expect(await run(["rotate", "--job", "exporter", "--now"], WITHOUT_KEYS)).toMatchObject({ status: 0 });
  const back = await run(["rotate", "--job", "exporter", "--rollback"], WITHOUT_KEYS);
  expect(back).toMatchObject({ status: 0 });
  expect(lists()).toBe(0);
  const unread = await run(["rotate", "--job", "fleet"], WITHOUT_KEYS);
  expect(unread).toMatchObject({ status: 1, stderr: expect.stringContaining("the projects of env ACCOUNT_KEY") });

  emulator.fault = undefined;
  expect(await run(["rotate", "--job", "fleet"], WITHOUT_KEYS)).toMatchObject({ status: 0 });
  emulator.fault = ({ path }) => (isList(path) ? { kind: "answer", status: 403, body: "{}" } : undefined);
  const known = await run(["rotate", "--job", "fleet", "--now"], WITHOUT_KEYS);
  expect(known).toMatchObject({ status: 0, stderr: expect.stringContaining("could not be read") });
  expect(createdBy(context)).toEqual({ a: 2, b: 2, c: 2 });
  const read = lists();
  expect(await run(["rotate", "--job", "fleet", "--rollback"], WITHOUT_KEYS)).toMatchObject({ status: 0 });
  expect(lists()).toBe(read);
});
