// A database that was moved by logical replication has all rows of all tables, but its sequences start anew.

import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import type { Emulator } from "../../support/emulator.ts";
import { forgetSequences } from "../../support/forget-sequences.ts";
import { lastDays, servedNumbers, storedNumbers } from "../numbers.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const READING = { groupings: ["none", "endpoint"], window: lastDays(2) };
const EXPORTS = [{ groupings: READING.groupings }];

/** The usage of a service: after `grow()` its numbers are higher, and it has a new group. */
function growing() {
  let isLater = false;
  const usage = () =>
    isLater
      ? [
          { endpoint: "listen", requests: 6 },
          { endpoint: "speak", requests: 3 },
        ]
      : [{ endpoint: "listen", requests: 5 }];
  return { usage, grow: () => (isLater = true) };
}

test("an export after the move stores the current numbers of the service, and its new groups", async ({ context }) => {
  const { usage, grow } = growing();
  const emulator = await context.serve({ usage });
  await context.configure(smallConfig(emulator.url, { exports: EXPORTS }));
  for (const _ of [1, 2, 3]) expect(await context.run(["export"])).toMatchObject({ status: 0 });
  grow();
  await forgetSequences(db);

  const { status, stdout, stderr } = await context.run(["export"]);

  expect(stdout).toMatch(/^nightly: 2 requests, 4 slices complete, 0 suspect, 0 failed; 6 rows changed\n$/);
  expect(stderr).toContain("sequences were behind what is stored");
  expect(status).toBe(0);
  await expectServed(context, emulator);
});

test("migrate raises sequences that are behind the stored numbers", async ({ context }) => {
  const { usage } = growing();
  const emulator = await context.serve({ usage });
  await context.configure(smallConfig(emulator.url, { exports: EXPORTS }));
  await context.run(["export"]);
  await forgetSequences(db);
  expect(await context.run(["migrate"])).toMatchObject({ status: 0, stderr: expect.stringContaining("were raised") });
  expect((await context.run(["export"])).stderr).not.toContain("sequences were behind");
});

async function expectServed(context: ProgramContext, emulator: Emulator): Promise<void> {
  expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, context.key, READING));
}
