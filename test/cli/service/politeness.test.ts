// The service is called no faster and no more often than the service and the configuration allow.

import { rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import type { SeenRequest } from "../../support/emulator.ts";
import { ALL_GROUPINGS } from "../numbers.ts";
import { PROJECT_ID, programTest } from "../program-context.ts";
import { PRODUCTION, smallConfig } from "../small-config.ts";

const database = await testDatabase();
const test = programTest(database);

/** An export of sixteen series. */
const MANY = [
  {
    groupings: ALL_GROUPINGS,
    checkFeatures: "off",
    filters: [{ name: "all" }, { name: "sync", dimensions: { method: "sync" } }],
  },
];

test("after a 429 with Retry-After no series is requested for that time, and then all are read", async ({
  context,
}) => {
  const emulator = await context.serve();
  emulator.fault = () =>
    emulator.requests.length === 3 ? { kind: "answer", status: 429, headers: { "retry-after": "2" } } : undefined;
  await context.configure(smallConfig(emulator.url, { service: { maxConcurrent: 4 }, exports: MANY }));

  const { status, stderr } = await context.start(["export"]).ended;
  expect(status).toBe(0);

  const [, , refused, ...later] = emulator.requests;
  const after = later.map((request) => millisecondsBetween(refused, request));
  // A busy machine reads the answer some time after it was given.
  const readAfter = whenRetried(stderr).getTime() - (refused?.receivedAt.getTime() ?? 0);
  expect(refused?.status).toBe(429);
  expect(emulator.requests.filter(({ path }) => path === refused?.path)).toHaveLength(2);
  // Requests within the 2 s were under way before the program had read the 429.
  expect(after.filter((ms) => ms < 2_000).length).toBeLessThan(after.length / 2);
  expect(after.filter((ms) => ms >= readAfter + 50 && ms < 2_000)).toEqual([]);
});

test("after a Retry-After that is too long to wait for nothing more is requested, and each series fails", async ({
  context,
}) => {
  const emulator = await context.serve({
    fault: () => ({ kind: "answer", status: 429, headers: { "retry-after": "3600" } }),
  });
  await context.configure(smallConfig(emulator.url, { exports: MANY }));

  const result = await context.run(["export"]);

  expect(result).toMatchObject({ status: 1, stdout: expect.stringContaining("32 failed") });
  // Those that were in flight when the first answer came.
  expect(emulator.requests.length).toBeLessThanOrEqual(4);
  const { rows } = await sql`
    select count(*)::integer as slices from bi.coverage where status = 'failed' and error ~ 'again in 3[0-9]{3} s'
  `.execute(database.db);
  expect(rows).toEqual([{ slices: 32 }]);
});

test("after a 401 the key file is read again, so that a run can use a replaced key", async ({ context }) => {
  const renewed = context.newSecret("exporter.key");
  const file = path.join(context.folder, "exporter.key");
  await writeFile(file, context.newSecret("exporter.key"));
  const emulator = await context.serve({
    consoleKeys: [{ secret: renewed, projectId: PROJECT_ID, scopes: ["member"] }],
  });
  // Renamed into place, as a file that is being written is empty for a moment.
  let replaced: Promise<void> | undefined;
  const replace = async () => {
    await writeFile(`${file}.new`, renewed);
    await rename(`${file}.new`, file);
  };
  emulator.fault = ({ keyId }) => {
    if (keyId !== undefined) return undefined;
    replaced ??= replace();
    return { kind: "hold", until: replaced };
  };
  const projects = [{ ...PRODUCTION, key: { file: "exporter.key" } }];
  await context.configure(smallConfig(emulator.url, { projects, exports: MANY }));

  expect(await context.run(["export"])).toMatchObject({ status: 0 });

  expect(emulator.requests.filter(({ status }) => status === 401).length).toBeLessThanOrEqual(4);
});

/** When the log says that a call failed and is tried again. */
function whenRetried(log: string): Date {
  const line = log.split("\n").find((one) => one.includes("service call failed, trying again"));
  if (line === undefined) throw new Error(`no call was tried again:\n${log}`);
  return new Date(JSON.parse(line).time);
}

function millisecondsBetween(first: SeenRequest | undefined, second: SeenRequest | undefined): number {
  if (!first || !second) throw new Error("there is no such request");
  return second.receivedAt.getTime() - first.receivedAt.getTime();
}
