import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { writeWholeFile } from "../../src/cli/whole-file.ts";

test("what breaks off half way leaves the file that was there, and nothing beside it", async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-whole-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = path.join(folder, "report.html");
  await writeFile(file, "the old one");
  async function* half() {
    yield "half of a new one";
    throw new Error("the source is away");
  }

  await expect(writeWholeFile(file, half(), AbortSignal.timeout(5_000))).rejects.toThrow("the source is away");
  expect([await readFile(file, "utf8"), await readdir(folder)]).toEqual(["the old one", ["report.html"]]);

  await writeWholeFile(file, ["a new ", "one"], AbortSignal.timeout(5_000));
  expect([await readFile(file, "utf8"), await readdir(folder)]).toEqual(["a new one", ["report.html"]]);
});
