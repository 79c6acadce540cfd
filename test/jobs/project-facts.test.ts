// Of more projects than a run has time for, the keys of those that were read longest ago are read first.

import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { ExportContext } from "../../src/jobs/export-context.ts";
import { readProjectFacts } from "../../src/jobs/project-facts.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();

const PROJECTS = Array.from({ length: 120 }, (_, i) => ({ id: `${randomUUID()}`, name: `customer-${i}` }));

/** Reads until `count` projects were asked for, and returns their ids. */
async function readSome(count: number): Promise<readonly string[]> {
  const stop = new AbortController();
  const asked: string[] = [];
  const context = {
    app: { signal: stop.signal, log: pino({ level: "silent" }) },
    db,
    keys: {
      use: async ({ id }: { id: string }) => {
        asked.push(id);
        if (asked.length === count) stop.abort();
      },
    },
  };
  await readProjectFacts(context as unknown as ExportContext, PROJECTS, "usage");
  return asked;
}

test("two runs that have time for 70 of 120 projects read them all, and a third begins anew", async () => {
  const [first, second] = [await readSome(70), await readSome(70)];
  expect(new Set([...first, ...second]).size).toBe(120);
  const third = await readSome(70);
  expect(new Set([...second, ...third]).size).toBeGreaterThan(110);
});
