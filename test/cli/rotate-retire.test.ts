// What becomes of a key that was replaced.

import { expect } from "vitest";
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
  expect(world.emulator.requests.length).toBe(before);
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

test("where accessors are no keys' ids its age alone counts, and that is said", async ({ world }) => {
  await replaced(world, 8);
  usage = [{ accessor: "somebody", daysAgo: 1 }];
  await world.run(["rotate"]);
  expect(await noteOf(world)).toContain("by its age alone: the breakdown by accessor does not tell which key is which");
});

test("where the breakdown can't be read its age alone counts, and that is said", async ({ world }) => {
  await replaced(world, 8);
  world.emulator.fault = ({ path }) => (path.includes("accessor") ? { kind: "answer", status: 403 } : undefined);
  await world.run(["rotate"]);
  expect(await noteOf(world)).toMatch(/by its age alone: the breakdown by accessor could not be read: .*403/);
});

test("a key that is to be deleted is, and its sealed secret is not kept", async ({ world }) => {
  const { old, oldSecret } = await replaced(world, 8);
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
  expect((await world.run(["rotate", "--now"])).status).toBe(0);
  expect(await statesOf(world)).toEqual(["retired", "active"]);
  expect(createdKeys(world)).toHaveLength(1);
  expect(world.emulator.secretWorks(sinkSecret(world) ?? "")).toBe(true);
});

test("a key that somebody has deleted already is retired all the same", async ({ world }) => {
  const { old } = await replaced(world, 8);
  await world.configure({ retire: "delete" });
  await deleteAtService(world, old);
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(deletesOf(world).at(-1)?.status).toBe(404);
  expect(await noteOf(world)).toBe("it is due for removal; the service had it no more");
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
  await replaced(world, 8);
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
  const { oldSecret } = await replaced(world, 8);
  const project = { id: "project-1", name: "production", key: { env: "USAGE_EXPORT_KEY" } };
  await world.configure({ retire: "delete" }, { projects: [project] });
  const { status, stderr } = await world.run(["rotate"], { USAGE_EXPORT_KEY: oldSecret });
  expect(status).toBe(0);
  expect(stderr).toContain("key not deleted: it is the one this rotation calls with");
  expect(deletesOf(world)).toEqual([]);
});

test("a key that is the only one the service lists is not deleted", async ({ world }) => {
  const { old } = await replaced(world, 8);
  await world.configure({ retire: "delete" });
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
