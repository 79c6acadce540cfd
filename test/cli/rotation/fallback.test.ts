// Which key an export uses if a rotation replaces its key, and when it falls back to the previous key.

import { writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { createdKeys, PROGRAM, PROJECT_ID, type RotationContext, rotationTest } from "./rotation-context.ts";

const test = await rotationTest();

async function deleteAtService({ emulator, firstKey }: RotationContext, apiKeyId: string | undefined): Promise<void> {
  const url = `${emulator.url}/v1/projects/project-1/keys/${apiKeyId}`;
  const { status } = await fetch(url, { method: "DELETE", headers: { authorization: `Token ${firstKey}` } });
  expect(status).toBe(200);
}

/** The ids of the keys of the requests for the breakdown, in order, without the first `since` requests; undefined for an unknown key. */
function readers({ emulator }: RotationContext, since = 0): readonly (string | undefined)[] {
  return emulator.requests
    .slice(since)
    .filter(({ path }) => path.includes("/usage/breakdown"))
    .map(({ keyId }) => keyId);
}

const consoleId = ({ emulator }: RotationContext) =>
  emulator.keys().find(({ origin }) => origin === "console")?.apiKeyId;

const GROUPINGS = ["none", "accessor", "deployment", "endpoint", "method", "model", "tags"];
const EXPORT = { name: "nightly", schedule: "15 2 * * *", projects: ["production"], window: { days: 2 } };

test("exports use the first key until the rotation has made one, and then the new one", async ({ context }) => {
  expect((await context.run(["export"])).status).toBe(0);
  expect(readers(context)).toEqual([consoleId(context)]);
  await context.prepare();
  const since = context.emulator.requests.length;
  expect((await context.run(["export"], { USAGE_EXPORT_KEY: undefined })).status).toBe(0);
  expect(readers(context, since)).toEqual(createdKeys(context));
});

test("a running export changes over to a new key", async ({ context }) => {
  await context.prepare();
  const [old] = createdKeys(context);
  await context.configure(
    {},
    {
      exports: [{ ...EXPORT, groupings: GROUPINGS }],
      // Of two processes each has a part of the calls in flight: the rotation need not wait for the held ones.
      service: { baseUrl: context.proxy.urlOf(PROGRAM), maxConcurrent: 2 },
    },
  );
  const since = context.emulator.requests.length;
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  let reads = 0;
  context.emulator.fault = ({ path }) => {
    if (!path.includes("grouping=")) return undefined;
    reads++;
    if (reads < 2) return undefined;
    begin();
    return { kind: "hold", until: held };
  };
  const exporting = context.start(["export"]);
  await begun;
  await context.prepare({ now: true });
  release();
  expect((await exporting.ended).status).toBe(0);
  const [, current] = createdKeys(context);
  const used = readers(context, since).filter((id) => id !== undefined);
  expect(used.slice(0, 2)).toEqual([old, old]);
  expect(used.at(-1)).toBe(current);
});

test("an export whose key the service refuses falls back to the previous key once, with an alert", async ({
  context,
}) => {
  await context.prepare();
  await context.prepare({ now: true });
  const [old, current] = createdKeys(context);
  await deleteAtService(context, current);
  await context.configure({}, { exports: [{ ...EXPORT, groupings: GROUPINGS }] });
  const since = context.emulator.requests.length;
  const { status, stderr } = await context.run(["export"]);
  expect(status).toBe(0);
  const readBy = readers(context, since);
  // Calls that are in flight when the first is refused are refused, too.
  expect(readBy.filter((key) => key !== undefined)).toEqual(GROUPINGS.map(() => old));
  expect(readBy.length).toBeLessThanOrEqual(GROUPINGS.length + 4);
  const alert = `the service refused ${current}, the key in use; ${old} was used in its place`;
  expect(stderr.match(/fell back to the previous key/g)).toHaveLength(1);
  const rows = await context.db
    .selectFrom("usage_export.key_event")
    .select(["reason", "actor"])
    .where("event", "=", "fallback")
    .execute();
  expect(rows).toEqual([{ reason: alert, actor: expect.stringContaining(" on ") }]);
  for (const command of ["status", "keys"]) expect((await context.run([command])).stdout).toContain(alert);
  expect((await context.run(["status"])).status).toBe(1);
});

test("the alert is resolved when there is a new key", async ({ context }) => {
  await context.prepare();
  await context.prepare({ now: true });
  await deleteAtService(context, createdKeys(context)[1]);
  await context.run(["export"]);
  expect((await context.run(["rotate", "--now"])).status).toBe(0);
  expect(await context.run(["status"])).toMatchObject({ status: 0, stdout: expect.not.stringContaining("refused") });
});

test("the first rotated key falls back to the `first` key of the configuration", async ({ context }) => {
  await context.prepare();
  await deleteAtService(context, createdKeys(context)[0]);
  const since = context.emulator.requests.length;
  expect((await context.run(["export"])).status).toBe(0);
  expect(readers(context, since)).toEqual([undefined, consoleId(context)]);
});

test("a stored key that does not open is replaced by the next rotation, and until then exports use the key before it, with an alert", async ({
  context,
}) => {
  await context.prepare();
  await context.prepare({ now: true });
  const [old, damaged] = createdKeys(context);
  await sql`update usage_export.api_key set sealed = left(sealed, -8) || 'AAAAAAAA' where state = 'active'`.execute(
    context.db,
  );
  const since = context.emulator.requests.length;
  const { status, stderr } = await context.run(["export"]);
  expect(status).toBe(0);
  expect(readers(context, since)).toEqual([old]);
  expect(stderr).toContain(`the sealed key ${damaged} does not open`);
  expect((await context.run(["status"])).stdout).toContain(`the sealed key ${damaged} does not open`);

  expect((await context.run(["rotate"])).status).toBe(0);
  const [, , fresh] = createdKeys(context);
  const sinceRotation = context.emulator.requests.length;
  await context.run(["export"]);
  expect(readers(context, sinceRotation)).toEqual([fresh]);
});

test("when every known key is refused the export fails, and says so", async ({ context }) => {
  await context.prepare();
  await context.prepare({ now: true });
  for (const id of createdKeys(context)) await deleteAtService(context, id);
  const since = context.emulator.requests.length;
  const { status, stdout } = await context.run(["export"], { USAGE_EXPORT_KEY: context.newSecret() });
  expect(status).toBe(1);
  expect(stdout).toContain("it does not accept the key");
  expect(readers(context, since)).toEqual([undefined, undefined, undefined]);
});

test("an answer 403 is no reason to fall back to the previous key", async ({ context }) => {
  await context.prepare();
  await context.prepare({ now: true });
  context.emulator.fault = ({ path }) => (path.includes("/usage/") ? { kind: "answer", status: 403 } : undefined);
  const since = context.emulator.requests.length;
  expect((await context.run(["export"])).status).toBe(1);
  expect(readers(context, since)).toEqual([createdKeys(context)[1]]);
});

test("if a key file is replaced while an export runs, the export reads it again, once", async ({ context }) => {
  const file = path.join(context.folder, "read.key");
  context.sinks.push(file);
  await writeFile(file, `${context.newSecret()}\n`);
  const project = { id: PROJECT_ID, name: "production", key: { file } };
  await context.configure({}, { projects: [project], rotations: [], exports: [{ ...EXPORT, groupings: ["none"] }] });
  // The service refuses the key, and by the time the program knows this the file contains another one.
  context.emulator.fault = () => void writeFileSync(file, `${context.firstKey}\n`);
  const { status } = await context.run(["export"]);
  expect(status).toBe(0);
  expect(readers(context)).toEqual([undefined, consoleId(context)]);
});
