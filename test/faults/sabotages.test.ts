// The sabotages run in `npm run faults` only. A change of the sources that moves their text is noticed here, at once.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";
import { SABOTAGES } from "./sabotages.ts";

const read = (file: string) => readFile(path.join(import.meta.dirname, "../..", file), "utf8");

test("the text that a sabotage replaces stands in its file once", async () => {
  const times = await Promise.all(
    SABOTAGES.map(async ({ file, replace }) => (await read(file)).split(replace).length - 1),
  );
  expect(SABOTAGES.filter((_, i) => times[i] !== 1).map(({ name }) => name)).toEqual([]);
});
