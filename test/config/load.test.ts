import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { loadConfig } from "../../src/config/config.ts";
import { SAMPLE } from "./sample-config.ts";

const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-config-"));
afterAll(() => rm(folder, { recursive: true }));

async function writeConfig(name: string, content: string | Uint8Array): Promise<string> {
  await writeFile(path.join(folder, name), content);
  return path.join(folder, name);
}

const EXAMPLE = path.join(import.meta.dirname, "../../jobs.config.json");

test("relative paths in the file start at its folder, wherever the program runs", async () => {
  const config = await loadConfig(await writeConfig("good.json", JSON.stringify(SAMPLE)));

  expect(config.projects[1]?.key).toEqual({ file: path.join(folder, "secrets/staging.key") });
});

test("the packaged example lacks nothing but the project's id", async () => {
  const said = /has 1 error:\n- projects\[0\]\.id \(line \d+\): expected your project's id at the service/;
  await expect(loadConfig(EXAMPLE)).rejects.toMatchObject({ code: "config", message: expect.stringMatching(said) });
});

test("the error for a missing file says how to make it or name another", async () => {
  const file = path.join(folder, "none.json");
  const message = `the configuration ${file} does not exist; make one with: usage-export init, or name another with --config FILE`;
  await expect(loadConfig(file)).rejects.toMatchObject({ code: "config", message });
});

test("the error for a file in another encoding says to save it as UTF-8", async () => {
  const file = await writeConfig("utf16.json", Buffer.from(`\uFEFF${JSON.stringify(SAMPLE)}`, "utf16le"));
  const message = expect.stringContaining("save it as UTF-8");
  await expect(loadConfig(file)).rejects.toMatchObject({ code: "config", message });
});
