// Of more projects than a run has time for, the keys of those that were read longest ago are read first.

import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { ExportContext } from "../../src/jobs/export-context.ts";
import { readProjectFacts } from "../../src/jobs/project-facts.ts";
import type { Project } from "../../src/usage/series.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();

const PROJECTS = newProjects(120);

function newProjects(length: number): Project[] {
  return Array.from({ length }, (_, i) => ({ id: `${randomUUID()}`, name: `customer-${i}` }));
}

/** Reads until `count` projects were asked for, and returns their ids. */
async function readSome(
  count: number,
  projects: readonly Project[] = PROJECTS,
  listOf: (id: string) => unknown = () => undefined,
): Promise<readonly string[]> {
  const stop = new AbortController();
  const asked: string[] = [];
  const context = {
    app: { signal: stop.signal, log: pino({ level: "silent" }) },
    db,
    keys: {
      use: async ({ id }: { id: string }) => {
        asked.push(id);
        if (asked.length === count) stop.abort();
        return listOf(id);
      },
    },
  };
  await readProjectFacts(context as unknown as ExportContext, projects, "usage");
  return asked;
}

test("two runs that have time for 70 of 120 projects read them all, and a third begins anew", async () => {
  const [first, second] = [await readSome(70), await readSome(70)];
  expect(new Set([...first, ...second]).size).toBe(120);
  const third = await readSome(70);
  expect(new Set([...second, ...third]).size).toBeGreaterThan(110);
});

test("a service without lists of keys is asked for those of a few projects, in each run for others", async () => {
  const projects = newProjects(120);
  const none = () => "absent";
  const [first, second] = [await readSome(120, projects, none), await readSome(120, projects, none)];
  expect(first.length).toBeLessThan(40);
  expect(new Set([...first, ...second]).size).toBe(first.length + second.length);
});

test("if a single one of the first projects has a list of keys, all are asked for theirs", async () => {
  const projects = newProjects(120);
  const listOf = (id: string) => (id === projects[0]?.id ? "refused" : "absent");
  expect(new Set(await readSome(120, projects, listOf)).size).toBe(120);
});
