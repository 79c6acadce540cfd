// Sabotages run only in `npm run faults`. This test notices at once if a text they change, or the test that must notice them, is gone.

import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { SABOTAGES } from "./sabotages.ts";

const pathOf = (file: string) => path.join(import.meta.dirname, "../..", file);
const read = (file: string) => readFile(pathOf(file), "utf8");

test("the text that a sabotage replaces stands in its file once", async () => {
  const times = await Promise.all(
    SABOTAGES.map(async ({ file, replace }) => (await read(file)).split(replace).length - 1),
  );
  expect(SABOTAGES.filter((_, i) => times[i] !== 1).map(({ name }) => name)).toEqual([]);
});

test("the test that must notice a sabotage is in its file or beside it", async () => {
  const isThere = SABOTAGES.map(async ({ noticedBy: [file, title] }) => {
    // Most tests of behaviour.test.ts are in files that it imports.
    const beside = file.endsWith("behaviour.test.ts") ? await readdir(pathOf("test/db"), { recursive: true }) : [];
    const files = [file, ...beside.flatMap((one) => (one.endsWith("-behaviour.ts") ? `test/db/${one}` : []))];
    return (await Promise.all(files.map(read))).some((text) => text.includes(title));
  });
  const found = await Promise.all(isThere);
  expect(SABOTAGES.filter((_, i) => !found[i]).map(({ noticedBy }) => noticedBy)).toEqual([]);
});
