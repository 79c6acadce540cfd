import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writeFileAtomically } from "../../../src/cli/output.ts";

const NEVER = new AbortController().signal;

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-whole-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

test("if the source fails in the middle, the old file stays and no temporary file is left", async () => {
  const folder = await makeFolder();
  const file = path.join(folder, "report.html");
  await writeFile(file, "the old one");
  const away = new Error("the source is away");
  async function* half() {
    yield "half of a new one";
    throw away;
  }

  await expect(writeFileAtomically(file, half(), NEVER)).rejects.toBe(away);
  expect([await readFile(file, "utf8"), await readdir(folder)]).toEqual(["the old one", ["report.html"]]);

  await writeFileAtomically(file, ["a new ", "one"], NEVER);
  expect([await readFile(file, "utf8"), await readdir(folder)]).toEqual(["a new one", ["report.html"]]);
});

test.each([
  ["in a folder that does not exist", "none/usage.csv", "ENOENT"],
  ["whose name is too long for the temporary file beside it", `${"u".repeat(250)}.csv`, "ENAMETOOLONG"],
  ["whose name is that of a folder", "folder", "EISDIR"],
])("the error for a file %s has the code delivery and names the file", async (_, name, code) => {
  const folder = await makeFolder();
  await mkdir(path.join(folder, "folder"));
  const file = path.join(folder, name);

  await expect(writeFileAtomically(file, ["usage"], NEVER)).rejects.toMatchObject({
    code: "delivery",
    message: `the file ${file} could not be written`,
    cause: { code },
  });
  expect(await readdir(folder)).toEqual(["folder"]);
});

test("a stop is reported as such, and leaves no file", async () => {
  const folder = await makeFolder();
  const stop = new AbortController();
  const reason = new Error("stopped by SIGTERM");
  function* stopped() {
    yield "some";
    stop.abort(reason);
    yield "more";
  }

  await expect(writeFileAtomically(path.join(folder, "usage.csv"), stopped(), stop.signal)).rejects.toBe(reason);
  expect(await readdir(folder)).toEqual([]);
});
