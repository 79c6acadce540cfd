// The command `demo`: the first thing a new user runs.

import { mkdir, readdir } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { smallConfig } from "./small-config.ts";
import { worldTest } from "./world.ts";

const test = worldTest();

test("it shows the whole product, calls nobody that is configured, and leaves nothing behind", async ({ world }) => {
  // With a key, a service and a database in place that would show what reached them.
  const emulator = await world.serve();
  await world.configure(smallConfig(emulator.url));
  const temporary = path.join(world.folder, "tmp");
  await mkdir(temporary);

  const { status, stdout } = await world.run(["demo"], { TMPDIR: temporary });

  expect(stdout).toMatch(/the last 30 days: 1 calls, 30 slices complete, 0 failed, \d+ rows written/);
  expect(stdout).toMatch(/the same night once more: .* 0 rows written/);
  expect(stdout).toMatch(/coverage +30 of 30 slices complete, 0 gaps/);
  expect(stdout).toMatch(/restatements +[1-9]\d* numbers changed/);
  expect({ status, requests: emulator.requests }).toEqual({ status: 0, requests: [] });
  expect(await readdir(temporary)).toEqual([]);
  expect(await readdir(world.folder)).toEqual(["jobs.config.json", "tmp"]);
});
