import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { lockFolder } from "../../src/db/lock-file.ts";
import { type Program, startScript } from "../support/program.ts";

const HOLDER = path.join(import.meta.dirname, "hold-folder.ts");

const root = await mkdtemp(path.join(os.tmpdir(), "usage-export-locks-"));
afterAll(() => rm(root, { recursive: true }));

let folders = 0;
const newFolder = () => path.join(root, `folder-${++folders}`);

/** Another process that takes the folder, as the command `export` would. */
function taker(folder: string): Program {
  return startScript(HOLDER, ["export", folder], { env: {} });
}

async function deadHolder(folder: string): Promise<void> {
  await using holder = taker(folder);
  await holder.waitFor("held");
  holder.kill("SIGKILL");
  await holder.ended;
}

test("a folder is made where there is none, for its owner only, and nothing but the lock is in it", async () => {
  const folder = newFolder();
  const unlock = await lockFolder(folder);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  expect(await readdir(folder)).toEqual(["lock"]);
  await unlock();
  expect(await readdir(folder)).toEqual([]);
});

test("a folder that can't be made is told with the reason, and what to do instead", async () => {
  const file = newFolder();
  await writeFile(file, "");
  await expect(lockFolder(path.join(file, "data"))).rejects.toMatchObject({
    code: "database",
    message: expect.stringMatching(
      /^the embedded database can't be kept in .*\/data; set DATABASE_URL to a Postgres server/,
    ),
    cause: { code: "ENOTDIR" },
  });
});

test("a folder that was released can be taken again", async () => {
  const folder = newFolder();
  await (await lockFolder(folder))();
  await (await lockFolder(folder))();
});

test("a second process is refused, and told which process holds it, what it does and how to go on", async () => {
  const folder = newFolder();
  await using holder = taker(folder);
  await holder.waitFor("held");
  await expect(lockFolder(folder)).rejects.toMatchObject({
    code: "database",
    message: expect.stringMatching(
      new RegExp(
        `^the embedded database in ${folder} is in use by process ${holder.pid} \\(usage-export export\\); .*DATABASE_URL`,
      ),
    ),
  });
  expect(await readdir(folder)).toEqual(["lock"]);
});

test("the same process is refused as well", async () => {
  const folder = newFolder();
  const unlock = await lockFolder(folder);
  await expect(lockFolder(folder)).rejects.toThrow(`is in use by process ${process.pid}`);
  await unlock();
});

test("the lock of a process that was killed is taken over", async () => {
  const folder = newFolder();
  await deadHolder(folder);
  const unlock = await lockFolder(folder);
  expect(JSON.parse(await readFile(path.join(folder, "lock"), "utf8"))).toMatchObject({ pid: process.pid });
  await unlock();
});

test("a process that has the number of a dead holder is not taken for it", async () => {
  const folder = newFolder();
  await mkdir(folder);
  const other = { pid: process.pid, processStart: "12345 of-another-boot", command: "start" };
  await writeFile(path.join(folder, "lock"), JSON.stringify(other));
  await (await lockFolder(folder))();
});

test.each(["", "{", "null", "[]", '{"pid": "x"}'])("a lock that reads %j is nobody's", async (text) => {
  const folder = newFolder();
  await mkdir(folder);
  await writeFile(path.join(folder, "lock"), text);
  await (await lockFolder(folder))();
});

test("of several processes that find a dead holder at once, one gets the folder", async () => {
  for (let round = 0; round < 3; round++) {
    const folder = newFolder();
    await deadHolder(folder);
    const takers = [1, 2, 3, 4, 5].map(() => taker(folder));
    try {
      const said = await Promise.all(takers.map((one) => Promise.race([one.waitFor("held"), one.waitFor("refused")])));
      expect(said.filter((line) => line === "held")).toHaveLength(1);
      expect(said.filter((line) => line.includes("is in use by"))).toHaveLength(4);
    } finally {
      for (const one of takers) one.kill("SIGKILL");
      await Promise.all(takers.map(({ ended }) => ended));
    }
  }
});

test("a takeover that crashed holds the folder up once, and no longer", async () => {
  const folder = newFolder();
  await deadHolder(folder);
  const takeover = path.join(folder, "lock.takeover");
  await mkdir(takeover);
  await expect(lockFolder(folder)).rejects.toThrow("is in use by another process");
  const longAgo = new Date(Date.now() - 60_000);
  await utimes(takeover, longAgo, longAgo);
  await expect(lockFolder(folder)).rejects.toThrow("is in use by another process");
  await (await lockFolder(folder))();
});
