import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { lockFolder } from "../../../src/db/connection/database.ts";
import { hasPidNamespaces, type Program, startScript } from "../../support/program.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const LOCKER = path.join(import.meta.dirname, "hold-folder.ts");

const root = temporaryFolder(afterAll);

let folders = 0;
const newFolder = () => path.join(root, `folder-${++folders}`);

/** Starts another process that locks the folder, as the command `export` would. It prints "held", or "refused" with the error. */
function startLocker(folder: string, options: { readonly pidNamespace?: boolean } = {}): Program {
  return startScript(LOCKER, ["export", folder], { env: {}, ...options });
}

test("a missing folder is created for its owner only", async () => {
  const folder = newFolder();
  const unlock = await lockFolder(folder);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  await expect(lockFolder(folder)).rejects.toThrow(`is in use by process ${process.pid}`);
  unlock();
  // If the lock file were removed, two processes could lock two different files of this name.
  expect(await readdir(folder)).toEqual(["lock", "lock.holder"]);
});

test("a folder that is in use can be locked only after its holder has ended", async () => {
  const folder = newFolder();
  await using holder = startLocker(folder);
  await holder.waitFor("held");
  await expect(lockFolder(folder)).rejects.toMatchObject({
    code: "database",
    message: expect.stringMatching(
      new RegExp(`^the embedded database in ${folder} is in use by process ${holder.pid}\\b.*DATABASE_URL`),
    ),
  });
  holder.kill("SIGKILL");
  await holder.ended;
  (await lockFolder(folder))(); // locks and unlocks it
  (await lockFolder(folder))();
});

// The processes are like containers that share a folder. The test is skipped if the user may not create PID namespaces.
test.skipIf(!hasPidNamespaces())(
  "only one of several processes with the same id in different PID namespaces gets the folder",
  async () => {
    const folder = newFolder();
    await expectOneHolder([1, 2, 3].map(() => startLocker(folder, { pidNamespace: true })));
  },
);

test("only one of several processes that start at once after the holder was killed gets the folder", async () => {
  for (let round = 0; round < 3; round++) {
    const folder = newFolder();
    await using holder = startLocker(folder);
    await holder.waitFor("held");
    holder.kill("SIGKILL");
    await holder.ended;
    await expectOneHolder([1, 2, 3, 4, 5].map(() => startLocker(folder)));
  }
});

async function expectOneHolder(lockers: readonly Program[]): Promise<void> {
  try {
    const said = await Promise.all(lockers.map((one) => Promise.race([one.waitFor("held"), one.waitFor("refused")])));
    expect(said.filter((line) => line === "held")).toHaveLength(1);
    expect(said.filter((line) => line.includes("is in use by"))).toHaveLength(lockers.length - 1);
  } finally {
    for (const one of lockers) one.kill("SIGKILL");
    await Promise.all(lockers.map(({ ended }) => ended));
  }
}
