// Rules for the files in migrations/.

import fs from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const FOLDER = path.join(import.meta.dirname, "../../../migrations");
const files = fs
  .readdirSync(FOLDER)
  .filter((file) => !["columns", "views"].includes(file))
  .sort();

test("migrations are numbered, and each number is used once", () => {
  const numbers = files.map((file) => /^(\d{4})_[a-z][a-z_]*\.ts$/.exec(file)?.[1]);
  expect(numbers).not.toContain(undefined);
  expect(new Set(numbers).size).toBe(files.length);
});

test.each(files)("%s imports nothing of the program, because the program may change", (file) => {
  const text = fs.readFileSync(path.join(FOLDER, file), "utf8");
  expect(text).not.toMatch(/from "\.|import\(/);
});

test.each(files)("%s exports only `up`", async (file) => {
  const migration: object = await import(path.join(FOLDER, file));
  expect(Object.keys(migration)).toEqual(["up"]);
});
