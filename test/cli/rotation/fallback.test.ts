// Which key an export uses if a rotation replaces its key, and when it falls back to the previous key.

import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { loadConfig } from "../../../src/config/config.ts";
import { AppError } from "../../../src/errors.ts";
import { openKeyRing } from "../../../src/jobs/key-ring.ts";
import { HOUR_MS } from "../../../src/usage/days.ts";
import { silentApp } from "../../support/silent-app.ts";
import { hold } from "../evidence.ts";
import { PROJECT_ID } from "../small-config.ts";
import { PROGRAM, type RotationContext, rotationTest } from "./rotation-context.ts";

const test = await rotationTest();

/** The id of the key of each breakdown request after the first `since` requests of any kind; undefined for a key that does not work. */
function breakdownKeyIds({ emulator }: RotationContext, since = 0): readonly (string | undefined)[] {
  return emulator.requests
    .slice(since)
    .filter(({ path }) => path.includes("/usage/breakdown"))
    .map(({ keyId }) => keyId);
}

const consoleKeyId = ({ emulator }: RotationContext) =>
  emulator.keys().find(({ origin }) => origin === "console")?.apiKeyId;

const GROUPINGS = ["none", "accessor", "deployment", "endpoint", "method", "model", "tags"];
const SEVEN_REQUESTS = { exports: [{ groupings: GROUPINGS }] };

test("exports use the first key until the rotation has made one", async ({ context }) => {
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(breakdownKeyIds(context)).toEqual([consoleKeyId(context)]);
  await context.rotateOrThrow();
  const since = context.emulator.requests.length;
  expect(await context.run(["export"], { USAGE_EXPORT_KEY: undefined })).toMatchObject({ status: 0 });
  expect(breakdownKeyIds(context, since)).toEqual(context.createdKeys());
});

test("a running export switches to a new key", async ({ context }) => {
  await context.rotateOrThrow();
  const [old] = context.createdKeys();
  // The held calls take both slots, so the rotation can begin only when one of them is given up, after `timeoutSeconds`.
  const service = { baseUrl: context.proxy.urlOf(PROGRAM), maxConcurrent: 2, timeoutSeconds: 10 };
  await context.configure({}, { ...SEVEN_REQUESTS, service });
  const since = context.emulator.requests.length;
  let grouped = 0;
  const { begun, release } = hold(context.emulator, ({ path }) => path.includes("grouping=") && ++grouped > 1);
  const exporting = context.run(["export"]);
  await begun;
  await context.rotateOrThrow("--now");
  release();
  expect(await exporting).toMatchObject({ status: 0 });
  const [, current] = context.createdKeys();
  const used = breakdownKeyIds(context, since);
  expect(used.slice(0, 2)).toEqual([old, old]);
  // The last call may have the old key: a call from before the rotation is repeated with it, perhaps after all others.
  expect(used).toContain(current);
});

test("an export with a refused key falls back to the previous key", async ({ context }) => {
  await context.rotateOrThrow();
  await context.rotateOrThrow("--now");
  const [old, current] = context.createdKeys();
  await context.deleteKey(current);
  await context.configure({}, SEVEN_REQUESTS);
  const since = context.emulator.requests.length;
  const { status, stderr } = await context.run(["export"]);
  expect(status).toBe(0);
  const readBy = breakdownKeyIds(context, since);
  // Up to four calls are in flight when the first one is refused, and are refused as well.
  expect(readBy.filter((key) => key !== undefined)).toEqual(GROUPINGS.map(() => old));
  expect(readBy.length).toBeLessThanOrEqual(GROUPINGS.length + 4);
  const alert = `the service refused ${current}, the key in use; ${old} was used in its place`;
  expect(stderr.match(/the key in use does not work/g)).toHaveLength(1);
  const rows = await context.db
    .selectFrom("usage_export.key_event")
    .select(["reason", "actor"])
    .where("event", "=", "fallback")
    .execute();
  expect(rows).toEqual([{ reason: alert, actor: expect.stringContaining(" on ") }]);
  for (const command of ["status", "keys"]) expect((await context.run([command])).stdout).toContain(alert);
  expect(await context.run(["status"])).toMatchObject({ status: 1 });

  expect(await context.run(["rotate", "--now"])).toMatchObject({ status: 0 });
  expect(await context.run(["status"])).toMatchObject({ status: 0, stdout: expect.not.stringContaining("refused") });
});

test("a worker reports a refused key once a day for as long as it is refused", async ({ context }) => {
  await context.rotateOrThrow();
  await context.rotateOrThrow("--now");
  const config = await loadConfig(path.join(context.folder, "jobs.config.json"));
  const env = { USAGE_EXPORT_KEY: context.key, USAGE_EXPORT_MASTER_KEY: context.masterKey };
  let hours = 0;
  const keys = await openKeyRing(silentApp({ env }), config, context.db, () => hours * HOUR_MS);
  const refused = new AppError("unauthorized", "no", { details: { status: 401 } });
  const reportsAfter = async (hour: number) => {
    hours = hour;
    let calls = 0;
    await keys.use({ id: PROJECT_ID, name: "production" }, async () => {
      if (++calls === 1) throw refused;
    });
    return (await context.events()).filter((event) => event === "fallback").length;
  };
  const reports = [];
  for (const hour of [0, 23, 24, 47, 48]) reports.push(await reportsAfter(hour));
  expect(reports).toEqual([1, 1, 2, 2, 3]);
});

test("the first rotated key falls back to the `first` key of the configuration", async ({ context }) => {
  await context.rotateOrThrow();
  await context.deleteKey(context.createdKeys()[0]);
  const since = context.emulator.requests.length;
  expect(await context.run(["export"])).toMatchObject({ status: 0 });
  expect(breakdownKeyIds(context, since)).toEqual([undefined, consoleKeyId(context)]);
});

test("exports use the previous key while the sealed text of the current one is damaged", async ({ context }) => {
  await context.rotateOrThrow();
  await context.rotateOrThrow("--now");
  const [old, damaged] = context.createdKeys();
  const damage = sql`update usage_export.api_key set sealed = left(sealed, -8) || 'AAAAAAAA' where state = 'active'`;
  await damage.execute(context.db);
  const since = context.emulator.requests.length;
  const { status, stderr } = await context.run(["export"]);
  expect(status).toBe(0);
  expect(breakdownKeyIds(context, since)).toEqual([old]);
  expect(stderr).toContain(`the sealed key ${damaged} does not open`);
  expect((await context.run(["status"])).stdout).toContain(`the sealed key ${damaged} does not open`);

  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  const [, , fresh] = context.createdKeys();
  const sinceRotation = context.emulator.requests.length;
  await context.run(["export"]);
  expect(breakdownKeyIds(context, sinceRotation)).toEqual([fresh]);
});

test("an export fails when every known key is refused", async ({ context }) => {
  await context.rotateOrThrow();
  await context.rotateOrThrow("--now");
  for (const id of context.createdKeys()) await context.deleteKey(id);
  const since = context.emulator.requests.length;
  const { status, stdout } = await context.run(["export"], { USAGE_EXPORT_KEY: context.newSecret() });
  expect(status).toBe(1);
  expect(stdout).toContain("it does not accept the key");
  expect(breakdownKeyIds(context, since)).toEqual([undefined, undefined, undefined]);
});

test("an answer 403 is no reason to fall back to the previous key", async ({ context }) => {
  await context.rotateOrThrow();
  await context.rotateOrThrow("--now");
  context.emulator.fault = ({ path }) => (path.includes("/usage/") ? { kind: "answer", status: 403 } : undefined);
  const since = context.emulator.requests.length;
  expect(await context.run(["export"])).toMatchObject({ status: 1 });
  expect(breakdownKeyIds(context, since)).toEqual([context.createdKeys()[1]]);
});
