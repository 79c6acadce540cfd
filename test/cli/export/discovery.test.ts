// Discovered projects: how they appear, vanish and change their names, and what an export does if their list is doubtful or unreadable.

import { sql } from "kysely";
import { expect } from "vitest";
import type { Fault, SeenRequest } from "../../support/emulator.ts";
import { accountOptions } from "../account.ts";
import { databaseTest, type ProgramContext } from "../program-context.ts";

const { test, db } = await databaseTest();

const ABC = { a: "alpha", b: "beta", c: "gamma" };

/** An account of projects with 5 API calls a day, in `names`, which a test may change, and an export of two days that discovers them. */
async function openAccount(context: ProgramContext, projects: Readonly<Record<string, string>>, fields: object = {}) {
  const names = new Map(Object.entries(projects));
  const secret = context.newSecret();
  const discovering = { discover: true, key: { env: "ACCOUNT_KEY" }, ...fields };
  const part = { projects: [discovering], exports: [{ projects: ["*"] }] };
  const emulator = await context.setUp(part, accountOptions(names, secret));
  const env = { ACCOUNT_KEY: secret, USAGE_EXPORT_KEY: undefined };
  return {
    emulator,
    names,
    run: (...args: readonly string[]) => context.run(args, env),
  };
}

/** Each project's name and its API calls on each stored day, by the project's id. */
async function storedCalls() {
  const { rows } = await sql<{ id: string; name: string; requests: string }>`
    select project_id as id, project as name, string_agg(requests::text, ' ' order by usage_date) as requests
    from bi.usage_total group by 1, 2 order by 1, 2
  `.execute(db);
  return Object.fromEntries(rows.map(({ id, name, requests }) => [id, `${name}: ${requests}`]));
}

const OK = { status: 0 };
const FAILED = { status: 1 };
const printsUsageRequests = (count: number) => ({ stdout: expect.stringContaining(`nightly: ${count} request`) });
const listFault = (fault: Fault) => (request: SeenRequest) => (request.path === "/v1/projects" ? fault : undefined);

test("projects may appear, vanish, change their names and come back", async ({ context }) => {
  const { names, run } = await openAccount(context, ABC);
  expect(await run("export")).toMatchObject(OK);
  expect(await storedCalls()).toEqual({ a: "alpha: 5 5", b: "beta: 5 5", c: "gamma: 5 5" });

  names.delete("c");
  names.set("b", "renamed").set("d", "delta");
  const second = await run("export");
  expect(second).toMatchObject(OK);
  expect(second.stdout).toContain("nightly: 3 requests, 6 slices complete");
  expect(await storedCalls()).toEqual({ a: "alpha: 5 5", b: "renamed: 5 5", c: "gamma: 5 5", d: "delta: 5 5" });
  // The days of a project that is gone are no longer due: status is well even without their slices.
  await sql`
    delete from usage_export.slice
    where series_id in (select series_id from usage_export.series where project_id = 'c')
  `.execute(db);
  const status = await run("status");
  expect(status).toMatchObject(OK);
  expect(status.stdout).toMatch(/projects of env ACCOUNT_KEY: 3, listed /);

  names.set("c", "gamma");
  await run("export");
  expect(await storedCalls()).toMatchObject({ c: "gamma: 5 5" });
  const { rows } = await sql`
    select count(*)::integer as due from usage_export.due_series where project_id = 'c'
  `.execute(db);
  expect(rows).toEqual([{ due: 1 }]);
  expect(await run("status")).toMatchObject(OK);
});

test("a list that lacks more than half of the projects is believed only an hour later", async ({ context }) => {
  const { emulator, names, run } = await openAccount(context, { ...ABC, d: "delta" });
  await run("export");
  for (const id of ["b", "c", "d"]) names.delete(id);
  // The service also stops answering for these projects.
  emulator.fault = ({ path }) =>
    /projects\/[bcd]\//.test(path) ? { kind: "answer", status: 404, body: "{}" } : undefined;

  const doubtful = await run("export");
  expect(doubtful).toMatchObject(printsUsageRequests(4));
  expect(doubtful.stderr).toContain("more than half of the projects are missing from the list");
  const status = await run("status");
  expect(status).toMatchObject(FAILED);
  expect(status.stdout.match(/missing from the list/g)).toHaveLength(1);
  expect(status.stdout).toContain("3 of 4 projects of env ACCOUNT_KEY have been missing from the list since");
  expect((await run("check")).stdout).toMatch(/warn missing: 3 are missing, more than half \(beta, gamma, delta\)/);
  expect(await run("export")).toMatchObject(printsUsageRequests(4));

  const overAnHour = sql`interval '61 minutes'`;
  await sql`
    update usage_export.discovered_project
    set first_seen_at = first_seen_at - ${overAnHour}, missing_since = missing_since - ${overAnHour}
  `.execute(db);
  expect(await run("export")).toMatchObject({ ...OK, ...printsUsageRequests(1) });
  expect(await storedCalls()).toEqual({ a: "alpha: 5 5", b: "beta: 5 5", c: "gamma: 5 5", d: "delta: 5 5" });
  expect(await run("status")).toMatchObject(OK);
});

test("check --confirm-projects believes a short list at once", async ({ context }) => {
  const { names, run } = await openAccount(context, ABC);
  await run("export");
  names.delete("b");
  names.delete("c");
  expect((await run("check", "--confirm-projects")).stdout).toContain("ok   list: 1 listed; 0 new, 2 gone");
  expect(await run("export")).toMatchObject(printsUsageRequests(1));
  // An empty list is believed, too.
  names.clear();
  expect((await run("check", "--confirm-projects")).stdout).toContain("warn list: 0 listed; 0 new, 1 gone");
});

test("a list that is cut off or can't be read leaves the projects as they were", async ({ context }) => {
  const { emulator, names, run } = await openAccount(context, ABC);
  expect(await run("export")).toMatchObject(printsUsageRequests(3));
  names.set("d", "delta");
  for (const fault of [
    listFault({ kind: "body", change: (json) => JSON.stringify(json).slice(0, -9) }),
    listFault({ kind: "body", change: () => ({}) }),
    // The list fills a page of four, so there may be more projects.
    listFault({ kind: "body", change: (json) => ({ ...Object(json), limit: 4 }) }),
    listFault({ kind: "answer", status: 403, body: "{}" }),
  ]) {
    emulator.fault = fault;
    expect(await run("export")).toMatchObject({
      ...OK,
      ...printsUsageRequests(3),
      stderr: expect.stringContaining("the list of projects could not be read: the last one is used"),
    });
  }
  const alert =
    /the projects of env ACCOUNT_KEY could not be listed since .*: 3 projects of the last list are exported; new ones are not until a list can be read; .*403/;
  expect(await run("status")).toMatchObject({ ...FAILED, stdout: expect.stringMatching(alert) });
  expect((await run("check")).stdout).toMatch(/FAIL list: .*403.*; projects that were listed before stay/);

  emulator.fault = undefined;
  expect(await run("export")).toMatchObject(printsUsageRequests(4));
  expect(await run("status")).toMatchObject(OK);
});

test("an export fails if the service does not list projects", async ({ context }) => {
  const { emulator, run } = await openAccount(context, { a: "alpha" });
  emulator.fault = listFault({ kind: "answer", status: 404, body: "{}" });
  const says = "the service does not list projects, so none can be discovered";
  expect(await run("export")).toMatchObject({ ...FAILED, stderr: expect.stringContaining(says) });
  expect(await run("check")).toMatchObject({ ...FAILED, stdout: expect.stringContaining(`FAIL list: ${says}`) });
});

test("`backfill` adds earlier days only when a project is new", async ({ context }) => {
  const { names, run } = await openAccount(context, { a: "alpha" }, { backfill: 6 });
  expect((await run("export")).stdout).toContain("nightly: 1 request, 6 slices complete");
  names.set("b", "beta");
  expect((await run("export")).stdout).toContain("nightly: 2 requests, 8 slices complete");
  expect(await storedCalls()).toEqual({ a: "alpha: 5 5 5 5 5 5", b: "beta: 5 5 5 5 5 5" });
  // Today becomes due when it is over.
  const { rows } = await sql`
    select distinct due_through = (now() at time zone 'UTC')::date - 1 as "untilYesterday" from usage_export.series
  `.execute(db);
  expect(rows).toEqual([{ untilYesterday: true }]);
  expect(await run("status")).toMatchObject(OK);
});

test("check counts all listed projects and checks three of them", async ({ context }) => {
  const prod = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`p${i}`, `prod-${i}`]));
  const { emulator, names, run } = await openAccount(context, { ...prod, lab: "lab" }, { include: ["prod-*"] });
  emulator.fault = listFault({ kind: "body", change: (list) => ({ projects: [{}, ...Object(list).projects] }) });
  const first = await run("check");
  expect(first).toMatchObject(OK);
  expect(first.stdout).toMatch(/ok {3}list: 41 listed; 41 new, 0 gone\n.*warn left out: entry 1: project_id/);
  expect(first.stderr).toContain("can't be used, and are left out");
  expect(first.stdout).toContain("3 of 40 are checked");
  expect(first.stdout.match(/^project /gm)).toHaveLength(3);

  await run("export");
  names.delete("p7");
  names.set("p8", "prod-renamed").set("new", "prod-new");
  expect((await run("check")).stdout).toContain("ok   list: 41 listed; 1 new, 1 gone");
});
