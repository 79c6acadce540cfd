// Exports with a key that a rotation renews.

import { writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { age, createdKeys, PROGRAM, PROJECT_ID, type RotationWorld, rotationTest } from "./rotation-world.ts";

const test = rotationTest();

async function deleteAtService({ emulator, firstKey }: RotationWorld, apiKeyId: string | undefined): Promise<void> {
  const url = `${emulator.url}/v1/projects/project-1/keys/${apiKeyId}`;
  const { status } = await fetch(url, { method: "DELETE", headers: { authorization: `Token ${firstKey}` } });
  expect(status).toBe(200);
}

/** The ids of the keys that the breakdown was read with, in order, since there were so many requests. */
function readers({ emulator }: RotationWorld, since = 0): readonly (string | undefined)[] {
  return emulator.requests
    .slice(since)
    .filter(({ path }) => path.includes("/usage/breakdown"))
    .map(({ keyId }) => keyId);
}

const consoleId = ({ emulator }: RotationWorld) => emulator.keys().find(({ origin }) => origin === "console")?.apiKeyId;

const GROUPINGS = ["none", "accessor", "deployment", "endpoint", "method", "model", "tags"];
const EXPORT = { name: "nightly", schedule: "15 2 * * *", projects: ["production"], window: { days: 2 } };

test("until the rotation has made a key the first one is used, and then the new one", async ({ world }) => {
  expect((await world.run(["export"])).status).toBe(0);
  expect(readers(world)).toEqual([consoleId(world)]);
  await world.prepare();
  const since = world.emulator.requests.length;
  expect((await world.run(["export"], { USAGE_EXPORT_KEY: undefined })).status).toBe(0);
  expect(readers(world, since)).toEqual(createdKeys(world));
});

test("an export that is under way takes up a new key without a restart", async ({ world }) => {
  await world.prepare();
  const [old] = createdKeys(world);
  await world.configure(
    {},
    {
      exports: [{ ...EXPORT, groupings: GROUPINGS }],
      service: { baseUrl: world.proxy.urlOf(PROGRAM), maxConcurrent: 1 },
    },
  );
  const since = world.emulator.requests.length;
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  let reads = 0;
  world.emulator.fault = ({ path }) => {
    if (!path.includes("grouping=")) return undefined;
    reads++;
    if (reads !== 2) return undefined;
    begin();
    return { kind: "hold", until: held };
  };
  const exporting = world.start(["export"]);
  await begun;
  await world.prepare({ now: true });
  release();
  expect((await exporting.ended).status).toBe(0);
  const [, current] = createdKeys(world);
  const used = readers(world, since).filter((id) => id !== undefined);
  expect(used.slice(0, 2)).toEqual([old, old]);
  expect(used.at(-1)).toBe(current);
});

test("a key that the service refuses is replaced by the one before it, once, with an alert", async ({ world }) => {
  await world.prepare();
  await world.prepare({ now: true });
  const [old, current] = createdKeys(world);
  await deleteAtService(world, current);
  await world.configure({}, { exports: [{ ...EXPORT, groupings: GROUPINGS }] });
  const since = world.emulator.requests.length;
  const { status, stderr } = await world.run(["export"]);
  expect(status).toBe(0);
  expect(readers(world, since)).toEqual([undefined, ...GROUPINGS.map(() => old)]);
  const alert = `the service refused ${current}, the key in use; ${old} was used in its place`;
  expect(stderr.match(/fell back to the previous key/g)).toHaveLength(1);
  const rows = await world.db
    .selectFrom("usage_export.key_event")
    .select(["reason", "actor"])
    .where("event", "=", "fallback")
    .execute();
  expect(rows).toEqual([{ reason: alert, actor: expect.stringContaining("usage-export on ") }]);
  for (const command of ["status", "keys"]) expect((await world.run([command])).stdout).toContain(alert);
  expect((await world.run(["status"])).status).toBe(1);
});

test("the alert is over when there is a new key", async ({ world }) => {
  await world.prepare();
  await world.prepare({ now: true });
  await deleteAtService(world, createdKeys(world)[1]);
  await world.run(["export"]);
  expect((await world.run(["rotate", "--now"])).status).toBe(0);
  expect(await world.run(["status"])).toMatchObject({ status: 0, stdout: expect.not.stringContaining("refused") });
});

test("the first key is what the first rotated one falls back to", async ({ world }) => {
  await world.prepare();
  await deleteAtService(world, createdKeys(world)[0]);
  const since = world.emulator.requests.length;
  expect((await world.run(["export"])).status).toBe(0);
  expect(readers(world, since)).toEqual([undefined, consoleId(world)]);
});

test("when the previous key is refused as well the export fails, and says so", async ({ world }) => {
  await world.prepare();
  await world.prepare({ now: true });
  for (const id of createdKeys(world)) await deleteAtService(world, id);
  const since = world.emulator.requests.length;
  const { status, stdout } = await world.run(["export"]);
  expect(status).toBe(1);
  expect(stdout).toContain("it does not accept the key");
  expect(readers(world, since)).toEqual([undefined, undefined]);
});

test("a key that may not do something is no reason to fall back", async ({ world }) => {
  await world.prepare();
  await world.prepare({ now: true });
  world.emulator.fault = ({ path }) => (path.includes("/usage/") ? { kind: "answer", status: 403 } : undefined);
  const since = world.emulator.requests.length;
  expect((await world.run(["export"])).status).toBe(1);
  expect(readers(world, since)).toEqual([createdKeys(world)[1]]);
});

test("a rotation whose key was deleted makes the next with the one before it", async ({ world }) => {
  await world.prepare();
  await world.prepare({ now: true });
  await deleteAtService(world, createdKeys(world)[1]);
  await age(world.db, 30);
  const { status, stderr } = await world.run(["rotate"]);
  expect(status).toBe(0);
  expect(stderr).toContain("fell back to the previous key");
});

test("a key in a file that was replaced while the export ran is read again, once", async ({ world }) => {
  const file = path.join(world.folder, "read.key");
  world.sinks.push(file);
  await writeFile(file, `${world.newSecret()}\n`);
  const project = { id: PROJECT_ID, name: "production", key: { file } };
  await world.configure({}, { projects: [project], rotations: [], exports: [{ ...EXPORT, groupings: ["none"] }] });
  // The service refuses the key, and by the time that this is known the file has another.
  world.emulator.fault = () => void writeFileSync(file, `${world.firstKey}\n`);
  const { status } = await world.run(["export"]);
  expect(status).toBe(0);
  expect(readers(world)).toEqual([undefined, consoleId(world)]);
});
