// What becomes of a key that was replaced.

import { sql } from "kysely";
import { expect } from "vitest";
import type { FaultPlan } from "../../../src/emulator/faults.ts";
import {
  age,
  createdKeys,
  type DaysUsage,
  events,
  ledgerRows,
  type RotationWorld,
  rotationTest,
  sinkSecret,
  usageOf,
} from "./rotation-world.ts";

let usage: readonly DaysUsage[] = [];
const test = rotationTest({ emulator: { usage: usageOf(() => usage) } });

type Replaced = { readonly old: string; readonly oldSecret: string; readonly current: string };

/** A key that was replaced so many days ago, and the one in its place. */
async function replaced(world: RotationWorld, daysAgo: number): Promise<Replaced> {
  usage = [];
  await world.prepare();
  const oldSecret = sinkSecret(world) ?? "";
  await world.prepare({ now: true });
  await age(world.db, daysAgo);
  const [old, current] = (await ledgerRows(world.db)).map(({ api_key_id }) => api_key_id ?? "");
  return { old: old ?? "", oldSecret, current: current ?? "" };
}

const statesOf = async ({ db }: RotationWorld) => (await ledgerRows(db)).map(({ state }) => state);
const noteOf = async ({ db }: RotationWorld) => (await ledgerRows(db))[0]?.note;
const deletesOf = ({ emulator }: RotationWorld) => emulator.requests.filter(({ method }) => method === "DELETE");

test("inside its grace a replaced key is left alone, and nothing is asked about it", async ({ world }) => {
  await replaced(world, 6);
  const before = world.emulator.requests.length;
  expect((await world.run(["rotate"])).status).toBe(0);
  // Whether the key in its place works.
  expect(world.emulator.requests.slice(before).map(({ path }) => path)).toEqual(["/v1/auth/token"]);
});

test("after its grace a key that nobody uses any more is due for removal, and shown as such", async ({ world }) => {
  const { old, oldSecret, current } = await replaced(world, 8);
  usage = [
    { accessor: old, daysAgo: 9 },
    { accessor: current, daysAgo: 1 },
  ];
  expect((await world.run(["rotate"])).stdout).toContain(`release ${old}: it was replaced 8 days ago, of 7 of grace`);
  expect(await noteOf(world)).toContain("the breakdown by accessor shows no usage since");
  expect((await world.run(["keys"])).stdout).toMatch(
    /draining \S+, 8 days old, last seen in use unknown, due for removal since/,
  );
  expect(world.emulator.secretWorks(oldSecret)).toBe(true);
});

test("a key that is still used is not due, whatever its age", async ({ world }) => {
  const { old } = await replaced(world, 40);
  await world.configure({ maxAgeDays: 90, retire: "delete" });
  usage = [{ accessor: old, daysAgo: 3 }];
  const { status, stderr } = await world.run(["rotate"]);
  expect(status).toBe(0);
  expect(stderr).toContain("replaced key still in use");
  expect(await statesOf(world)).toEqual(["draining", "active"]);
  expect(createdKeys(world)).toHaveLength(2);
});

test("where accessors are no keys' ids it is due by its age alone, and that is said", async ({ world }) => {
  await replaced(world, 8);
  usage = [{ accessor: "somebody", daysAgo: 1 }];
  await world.run(["rotate"]);
  expect(await noteOf(world)).toContain("by its age alone: the breakdown by accessor does not tell which key is which");
});

test("where the breakdown can't be read it is due by its age alone, and that is said", async ({ world }) => {
  await replaced(world, 8);
  world.emulator.fault = ({ path }) => (path.includes("accessor") ? { kind: "answer", status: 403 } : undefined);
  await world.run(["rotate"]);
  expect(await noteOf(world)).toMatch(/by its age alone: the breakdown by accessor could not be read: .*403/);
});

type Unproved = readonly [name: string, usage: (keys: Replaced) => readonly DaysUsage[], fault: FaultPlan | undefined];

const isBreakdown = ({ path }: { path: string }) => path.includes("grouping=accessor");
const unknown: readonly Unproved[] = [
  [
    "can't be read",
    ({ current }) => [{ accessor: current, daysAgo: 1 }],
    (request) => (isBreakdown(request) ? { kind: "answer", status: 503 } : undefined),
  ],
  ["does not tell keys apart", () => [{ accessor: "somebody", daysAgo: 1 }], undefined],
  ["shows no usage at all", () => [], undefined],
  ["shows nothing of the last days", ({ current }) => [{ accessor: current, daysAgo: 5 }], undefined],
  [
    "is of other days than were asked for",
    ({ current }) => [{ accessor: current, daysAgo: 1 }],
    (request) =>
      isBreakdown(request) ? { kind: "body", change: ({ start: _, end: __, ...json }) => json } : undefined,
  ],
];

test.for(unknown)("where the breakdown %s no key is deleted for its age", async ([, used, fault], { world }) => {
  const keys = await replaced(world, 40);
  usage = used(keys);
  world.emulator.fault = fault;
  await world.configure({ maxAgeDays: 90, retire: "delete" });
  for (let runs = 0; runs < 2; runs++) {
    const { status, stdout } = await world.run(["rotate"]);
    expect(status).toBe(0);
    expect(stdout).toContain(`kept ${keys.old}: it is due for removal; not deleted: the breakdown by accessor`);
  }
  expect(deletesOf(world)).toEqual([]);
  expect(world.emulator.secretWorks(keys.oldSecret)).toBe(true);
  expect((await events(world.db)).slice(-2)).toEqual(["due-for-removal", "kept"]);
  expect((await world.run(["keys"])).stdout).toMatch(
    /draining .*, due for removal since .*, it is due for removal; not deleted: /,
  );

  usage = [{ accessor: keys.current, daysAgo: 1 }];
  world.emulator.fault = undefined;
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(await statesOf(world)).toEqual(["retired", "active"]);
});

test("every day of a long grace is looked at before a key is deleted", async ({ world }) => {
  const { old, current } = await replaced(world, 61);
  usage = [
    { accessor: old, daysAgo: 55 },
    { accessor: current, daysAgo: 1 },
  ];
  await world.configure({ maxAgeDays: 90, graceDays: 60, retire: "delete" });
  expect((await world.run(["rotate"])).stdout).toContain("replaced key still in use");
  expect(deletesOf(world)).toEqual([]);
});

test("a key that is due for removal and is used again is not due any more, and not deleted", async ({ world }) => {
  const { old, current } = await replaced(world, 8);
  usage = [{ accessor: current, daysAgo: 1 }];
  await world.run(["rotate"]);
  usage = [...usage, { accessor: old, daysAgo: 0 }];
  await world.configure({ retire: "delete" });
  expect((await world.run(["rotate"])).stdout).toMatch(
    /kept \S+: not deleted: the breakdown by accessor shows usage on/,
  );
  expect(deletesOf(world)).toEqual([]);
  expect((await world.run(["keys"])).stdout).not.toContain("due for removal since");
});

test("where a person chose so, its age alone is enough to delete a key that the service shows nowhere", async ({
  world,
}) => {
  const { old, oldSecret } = await replaced(world, 8);
  await world.configure({ retire: { delete: "by-age" } });
  usage = [{ accessor: old, daysAgo: 1 }];
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(world.emulator.secretWorks(oldSecret)).toBe(true);
  usage = [];
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(world.emulator.secretWorks(oldSecret)).toBe(false);
  expect(await noteOf(world)).toContain("by its age alone: the breakdown by accessor does not tell which key is which");
});

test.for([
  ["ahead of", 8],
  ["behind", -8],
] as const)(
  "while the database's clock is %s the service's by days, no key is retired",
  async ([direction, days], { world }) => {
    const { oldSecret, current } = await replaced(world, 8);
    usage = [{ accessor: current, daysAgo: 1 }];
    await world.configure({ retire: { delete: "by-age" } });
    const { now } = world.emulator;
    world.emulator.now = () => new Date(now().getTime() - days * 24 * 60 * 60 * 1000);
    const { status, stdout } = await world.run(["rotate"]);
    expect(status).toBe(1);
    expect(stdout).toContain(
      `the database's clock is 8 days ${direction} the service's: no key is retired until they agree`,
    );
    expect(await statesOf(world)).toEqual(["draining", "active"]);
    expect((await world.run(["keys"])).stdout).not.toContain("due for removal since");
    expect(world.emulator.secretWorks(oldSecret)).toBe(true);
  },
);

test("a key rests no longer than the one in its place exists, whatever the database's clock said then", async ({
  world,
}) => {
  const { current } = await replaced(world, 8);
  usage = [{ accessor: current, daysAgo: 1 }];
  // As if the database's clock had been 8 days behind when the key was replaced.
  await sql`update usage_export.api_key set created_at = clock_timestamp() where api_key_id = ${current}`.execute(
    world.db,
  );
  await world.configure({ retire: { delete: "by-age" } });
  const { status, stdout } = await world.run(["rotate"]);
  expect(status).toBe(0);
  expect(stdout).toContain(
    "not every clock says that its grace is over: by one it was replaced 0 days ago, of 7 of grace",
  );
  expect(await statesOf(world)).toEqual(["draining", "active"]);
});

test("a key that is to be deleted is, and its sealed secret is not kept", async ({ world }) => {
  const { old, oldSecret, current } = await replaced(world, 8);
  usage = [{ accessor: current, daysAgo: 1 }];
  await world.configure({ retire: "delete" });
  const { status, stdout } = await world.run(["rotate"]);
  expect(status).toBe(0);
  expect(stdout).toMatch(/release .*\n {2}delete \S+: it is due for removal/);
  expect(world.emulator.secretWorks(oldSecret)).toBe(false);
  expect(world.emulator.secretWorks(sinkSecret(world) ?? "")).toBe(true);
  const row = await world.db
    .selectFrom("usage_export.api_key")
    .select(["state", "sealed", "master_key"])
    .where("api_key_id", "=", old)
    .executeTakeFirst();
  expect(row).toEqual({ state: "retired", sealed: null, master_key: null });
  expect((await events(world.db)).slice(-2)).toEqual(["due-for-removal", "retired"]);
});

test("without any grace the previous key is deleted as soon as the new one is in use", async ({ world }) => {
  await world.configure({ retire: "delete", graceDays: 0 });
  await world.prepare();
  // Of the first key, as of any that the service lists.
  usage = [{ accessor: world.emulator.keys()[0]?.apiKeyId ?? "", daysAgo: 0 }];
  expect((await world.run(["rotate", "--now"])).status).toBe(0);
  expect(await statesOf(world)).toEqual(["retired", "active"]);
  expect(createdKeys(world)).toHaveLength(1);
  expect(world.emulator.secretWorks(sinkSecret(world) ?? "")).toBe(true);
});

test("a key that somebody has deleted already is retired all the same", async ({ world }) => {
  const { old, current } = await replaced(world, 8);
  usage = [{ accessor: current, daysAgo: 1 }];
  await world.configure({ retire: "delete" });
  await deleteAtService(world, old);
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(deletesOf(world).at(-1)?.status).toBe(404);
  expect(await noteOf(world)).toMatch(/^it is due for removal; .* shows no usage .*; the service had it no more$/);
});

test("a key that is kept and that somebody deletes is retired when the service lists it no more", async ({ world }) => {
  const { old } = await replaced(world, 8);
  await world.run(["rotate"]);
  expect(await statesOf(world)).toEqual(["draining", "active"]);
  await deleteAtService(world, old);
  await world.run(["rotate"]);
  expect(await statesOf(world)).toEqual(["retired", "active"]);
});

test("a delete that fails fails the run, and is tried again by the next", async ({ world }) => {
  usage = [{ accessor: (await replaced(world, 8)).current, daysAgo: 1 }];
  await world.configure({ retire: "delete" });
  world.emulator.fault = ({ method }) => (method === "DELETE" ? { kind: "answer", status: 403 } : undefined);
  const { status, stdout } = await world.run(["rotate"]);
  expect(status).toBe(1);
  expect(stdout).toMatch(/failed: delete \S+: it is due for removal: .*403/);
  world.emulator.fault = undefined;
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(await statesOf(world)).toEqual(["retired", "active"]);
});

test("the key that the rotation calls with is not deleted", async ({ world }) => {
  const { oldSecret, current } = await replaced(world, 8);
  usage = [{ accessor: current, daysAgo: 1 }];
  const project = { id: "project-1", name: "production", key: { env: "USAGE_EXPORT_KEY" } };
  await world.configure({ retire: "delete" }, { projects: [project] });
  const { status, stderr } = await world.run(["rotate"], { USAGE_EXPORT_KEY: oldSecret });
  expect(status).toBe(0);
  expect(stderr).toContain("key not deleted: it is the one this rotation calls with");
  expect(deletesOf(world)).toEqual([]);
});

test("a key that is the only one the service lists is not deleted", async ({ world }) => {
  const { old } = await replaced(world, 8);
  await world.configure({ retire: { delete: "by-age" } });
  world.emulator.fault = ({ method, path }) =>
    method === "GET" && path.endsWith("/keys")
      ? { kind: "body", change: () => ({ api_keys: [{ api_key: { api_key_id: old } }] }) }
      : undefined;
  const { status, stderr } = await world.run(["rotate"]);
  expect(status).toBe(0);
  expect(stderr).toContain("key not deleted: it is the last one");
  expect(deletesOf(world)).toEqual([]);
});

async function deleteAtService({ emulator, firstKey }: RotationWorld, apiKeyId: string): Promise<void> {
  const url = `${emulator.url}/v1/projects/project-1/keys/${apiKeyId}`;
  const { status } = await fetch(url, { method: "DELETE", headers: { authorization: `Token ${firstKey}` } });
  expect(status).toBe(200);
}
