// Discovered projects: they appear, vanish, get other names, and the list of them can't always be believed or read.

import { sql } from "kysely";
import { expect } from "vitest";
import type { UsageRecord } from "../../../src/emulator/usage.ts";
import { testDatabase } from "../../support/database.ts";
import type { Emulator, Fault, SeenRequest } from "../../support/emulator.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const USAGE: readonly UsageRecord[] = [
  { accessor: "key-a", model: ["nova-3"], method: "sync", requests: 5, tags: null },
];

type Fields = Readonly<Record<string, unknown>>;
type Account = {
  readonly emulator: Emulator;
  /** The names of the projects by their ids. A test changes them. */
  readonly names: Map<string, string>;
  readonly run: (...args: readonly string[]) => ReturnType<ProgramContext["run"]>;
};

/** An account of these projects, and a configuration that discovers them with its key. */
async function openAccount(
  context: ProgramContext,
  projects: Readonly<Record<string, string>>,
  { entry = {} }: { entry?: Fields } = {},
): Promise<Account> {
  const names = new Map(Object.entries(projects));
  const secret = context.newSecret();
  const emulator = await context.serve({
    usage: () => USAGE,
    projects: () => [...names].map(([id, name]) => ({ id, name })),
    consoleKeys: [{ secret, projectId: "a", scopes: ["member"], isAccountKey: true }],
  });
  const discovering = { discover: true, key: { env: "ACCOUNT_KEY" }, ...entry };
  await context.configure(smallConfig(emulator.url, { exports: [{ projects: ["*"] }], projects: [discovering] }));
  return { emulator, names, run: (...args) => context.run(args, { ACCOUNT_KEY: secret, USAGE_EXPORT_KEY: undefined }) };
}

/** By the project's id, its name in the views and the requests of its days. */
async function stored() {
  const { rows } = await sql<{ id: string; name: string; requests: string }>`
    select project_id as id, project as name, string_agg(requests::text, ' ' order by usage_date) as requests
    from bi.usage_total group by 1, 2 order by 1, 2
  `.execute(db);
  return Object.fromEntries(rows.map(({ id, name, requests }) => [id, `${name}: ${requests}`]));
}

/** Makes the stored lists an hour and a minute older. */
async function passAnHour(): Promise<void> {
  await sql`
    update usage_export.discovered_project
    set first_seen_at = first_seen_at - interval '61 minutes', missing_since = missing_since - interval '61 minutes'
  `.execute(db);
}

const listing = (fault: Fault) => (request: SeenRequest) => (request.path === "/v1/projects" ? fault : undefined);

test("projects that appear are exported, those that vanish keep their numbers, and renamed ones stay the same", async ({
  context,
}) => {
  const { names, run } = await openAccount(context, { a: "alpha", b: "beta", c: "gamma" });
  expect(await run("export")).toMatchObject({ status: 0 });
  expect(await stored()).toEqual({ a: "alpha: 5 5", b: "beta: 5 5", c: "gamma: 5 5" });

  names.delete("c");
  names.set("b", "renamed").set("d", "delta");
  const second = await run("export");

  expect(second).toMatchObject({ status: 0 });
  expect(second.stdout).toContain("nightly: 3 requests, 6 slices complete");
  expect(await stored()).toEqual({ a: "alpha: 5 5", b: "renamed: 5 5", c: "gamma: 5 5", d: "delta: 5 5" });
  // Days of the project that is gone are due no longer, however long ago they were read.
  await sql`delete from usage_export.slice where series_id in (select series_id from usage_export.series where project_id = 'c')`.execute(
    db,
  );
  const status = await run("status");
  expect(status).toMatchObject({ status: 0 });
  expect(status.stdout).toMatch(/projects of env ACCOUNT_KEY: 3, listed /);
});

test("a project that comes back is read again, with the days that were missed", async ({ context }) => {
  const { names, run } = await openAccount(context, { a: "alpha", b: "beta", c: "gamma" });
  await run("export");
  names.delete("c");
  await run("export");
  names.set("c", "gamma");

  await run("export");

  expect(await stored()).toMatchObject({ c: "gamma: 5 5" });
  const { rows } = await sql`
    select count(*)::integer as due from usage_export.due_series where project_id = 'c'
  `.execute(db);
  expect(rows).toEqual([{ due: 1 }]);
  expect(await run("status")).toMatchObject({ status: 0 });
});

test("a list without more than half of the projects is not believed until an hour later, or until a person confirms it", async ({
  context,
}) => {
  const { emulator, names, run } = await openAccount(context, { a: "alpha", b: "beta", c: "gamma", d: "delta" });
  await run("export");
  for (const id of ["b", "c", "d"]) names.delete(id);
  // The service also stops to answer for them.
  emulator.fault = ({ path }) =>
    /projects\/[bcd]\//.test(path) ? { kind: "answer", status: 404, body: "{}" } : undefined;

  const doubtful = await run("export");
  expect(doubtful.stdout).toContain("nightly: 4 requests");
  expect(doubtful.stderr).toContain("more than half of the projects are missing from the list");
  const status = await run("status");
  expect(status).toMatchObject({ status: 1 });
  expect(status.stdout.match(/missing from the list/g)).toHaveLength(1);
  expect(status.stdout).toContain("3 of 4 projects of env ACCOUNT_KEY are missing from the list since");

  const check = await run("check");
  expect(check.stdout).toMatch(/warn missing: 3 are missing, more than half \(beta, gamma, delta\)/);
  expect((await run("export")).stdout).toContain("nightly: 4 requests");
  await passAnHour();
  const confirmed = await run("export");

  expect(confirmed).toMatchObject({ status: 0 });
  expect(confirmed.stdout).toContain("nightly: 1 requests");
  expect(await stored()).toEqual({ a: "alpha: 5 5", b: "beta: 5 5", c: "gamma: 5 5", d: "delta: 5 5" });
  expect(await run("status")).toMatchObject({ status: 0 });
});

test("check --confirm-projects believes a short list at once", async ({ context }) => {
  const { names, run } = await openAccount(context, { a: "alpha", b: "beta", c: "gamma" });
  await run("export");
  names.delete("b");
  names.delete("c");

  expect((await run("check", "--confirm-projects")).stdout).toContain("1 listed; 0 new, 2 gone");
  expect((await run("export")).stdout).toContain("nightly: 1 requests");
});

test("a list that is cut, or not readable, leaves the projects as they were", async ({ context }) => {
  const { emulator, names, run } = await openAccount(context, { a: "alpha", b: "beta", c: "gamma" });
  expect((await run("export")).stdout).toContain("nightly: 3 requests");
  names.set("d", "delta");
  for (const fault of [
    listing({ kind: "body", change: (json) => JSON.stringify(json).slice(0, -9) }),
    listing({ kind: "body", change: () => ({}) }),
    listing({ kind: "body", change: (json) => ({ ...Object(json), limit: 4 }) }),
    listing({ kind: "answer", status: 403, body: "{}" }),
  ]) {
    emulator.fault = fault;
    const { status, stdout, stderr } = await run("export");
    expect({ status, stdout }).toMatchObject({ status: 0, stdout: expect.stringContaining("nightly: 3 requests") });
    expect(stderr).toContain("the list of projects could not be read: those of the last list are exported");
  }
  const alert = await run("status");
  expect(alert.stdout).toMatch(
    /the projects of env ACCOUNT_KEY can't be listed since .*: 3 projects of the last list are exported, and new ones are not until it is mended; .*403/,
  );
  expect(alert.status).toBe(1);
  expect((await run("check")).stdout).toMatch(/FAIL list: .*403.*; projects that were listed before stay/);

  emulator.fault = undefined;
  expect((await run("export")).stdout).toContain("nightly: 4 requests");
  expect(await run("status")).toMatchObject({ status: 0 });
});

test("a service that does not list projects is named as such, and nothing is exported", async ({ context }) => {
  const { emulator, run } = await openAccount(context, { a: "alpha" });
  emulator.fault = listing({ kind: "answer", status: 404, body: "{}" });

  const { status, stderr } = await run("export");
  expect(status).toBe(1);
  expect(stderr).toContain("the service does not list projects, so none can be discovered");
  const check = await run("check");
  expect(check.status).toBe(1);
  expect(check.stdout).toContain("FAIL list: the service does not list projects, so none can be discovered");
});

test("a project that the key may not read fails alone, until it is excluded", async ({ context }) => {
  const { emulator, run } = await openAccount(context, { a: "alpha", b: "beta", c: "gamma" });
  emulator.fault = ({ path }) =>
    path.includes("projects/b/") ? { kind: "answer", status: 403, body: "{}" } : undefined;

  expect((await run("export")).stdout).toContain("nightly: 3 requests, 4 slices complete, 0 suspect, 2 failed");
  expect(await stored()).toEqual({ a: "alpha: 5 5", c: "gamma: 5 5" });
  expect(await run("status")).toMatchObject({ status: 1 });

  await context.configure(
    smallConfig(emulator.url, {
      projects: [{ discover: true, key: { env: "ACCOUNT_KEY" }, exclude: ["beta"] }],
      exports: [{ projects: ["*"] }],
    }),
  );
  expect((await run("export")).stdout).toContain("nightly: 2 requests, 4 slices complete");
  expect(await run("status")).toMatchObject({ status: 0 });
});

test("a new project is read with the days before its first one, and an old one is not read so again", async ({
  context,
}) => {
  const { names, run } = await openAccount(context, { a: "alpha" }, { entry: { backfill: 6 } });
  expect((await run("export")).stdout).toContain("nightly: 1 requests, 6 slices complete");
  names.set("b", "beta");

  expect((await run("export")).stdout).toContain("nightly: 2 requests, 8 slices complete");

  expect(await stored()).toEqual({ a: "alpha: 5 5 5 5 5 5", b: "beta: 5 5 5 5 5 5" });
  expect(await run("status")).toMatchObject({ status: 0 });
});

test("check says what was found, in a line for each list, and checks some of the projects", async ({ context }) => {
  const { names, run } = await openAccount(
    context,
    { ...Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`p${i}`, `prod-${i}`])), lab: "lab" },
    { entry: { include: ["prod-*"] } },
  );
  const first = await run("check");
  expect(first).toMatchObject({ status: 0 });
  expect(first.stdout).toContain("ok   list: 41 listed; 41 new, 0 gone");
  expect(first.stdout).toContain("3 of 40 are checked");
  expect(first.stdout.match(/^project /gm)).toHaveLength(3);

  await run("export");
  names.delete("p7");
  names.set("p8", "prod-renamed").set("new", "prod-new");
  const second = await run("check");
  expect(second.stdout).toContain("ok   list: 41 listed; 1 new, 1 gone");
});
