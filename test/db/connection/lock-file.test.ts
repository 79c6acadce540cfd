import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { lockFolder } from "../../../src/db/connection/database.ts";
import { hasPidNamespaces, type Program, startScript } from "../../support/program.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const HOLDER = path.join(import.meta.dirname, "hold-folder.ts");

const root = temporaryFolder(afterAll);

let folders = 0;
const newFolder = () => path.join(root, `folder-${++folders}`);

/** Starts another process that locks the folder, as the command `export` would. */
function startTaker(folder: string, options: { readonly pidNamespace?: boolean } = {}): Program {
  return startScript(HOLDER, ["export", folder], { env: {}, ...options });
}

test("a missing folder is created for its owner only, and contains nothing but the files of the lock", async () => {
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
  await using holder = startTaker(folder);
  await holder.waitFor("held");
  await expect(lockFolder(folder)).rejects.toMatchObject({
    code: "database",
    message: expect.stringMatching(
      new RegExp(`^the embedded database in ${folder} is in use by process ${holder.pid}\\b.*DATABASE_URL`),
    ),
  });
  holder.kill("SIGKILL");
  await holder.ended;
  (await lockFolder(folder))();
  (await lockFolder(folder))();
});

// The processes are like containers that share a folder. The test is skipped if the user may not create PID namespaces.
test.skipIf(!hasPidNamespaces())(
  "of processes with the same id in different namespaces one gets the folder",
  async () => {
    const folder = newFolder();
    await expectOneHolder([1, 2, 3].map(() => startTaker(folder, { pidNamespace: true })));
  },
);

test("of several processes that start at once after the holder was killed, one gets the folder", async () => {
  for (let round = 0; round < 3; round++) {
    const folder = newFolder();
    await using holder = startTaker(folder);
    await holder.waitFor("held");
    holder.kill("SIGKILL");
    await holder.ended;
    await expectOneHolder([1, 2, 3, 4, 5].map(() => startTaker(folder)));
  }
});

async function expectOneHolder(takers: readonly Program[]): Promise<void> {
  try {
    const said = await Promise.all(takers.map((one) => Promise.race([one.waitFor("held"), one.waitFor("refused")])));
    expect(said.filter((line) => line === "held")).toHaveLength(1);
    expect(said.filter((line) => line.includes("is in use by"))).toHaveLength(takers.length - 1);
  } finally {
    for (const one of takers) one.kill("SIGKILL");
    await Promise.all(takers.map(({ ended }) => ended));
  }
}
