// A key that the service refuses is read again once, and is not called with until then.

import { rename, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
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
