import { globSync, readFileSync } from "node:fs";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();

test("benchmarks name only tables and views that exist", async () => {
  const texts = globSync("tools/bench/**/*.ts").map((file) => readFileSync(file, "utf8"));
  const names = texts.flatMap((text) =>
    [...text.matchAll(/\b(?:usage_export|bi)\.[a-z_]+\b(?!\()/g)].map(([name]) => name),
  );
  const { rows } = await sql`select name from unnest(${names}::text[]) name where to_regclass(name) is null`.execute(
    db,
  );
  expect(rows).toEqual([]);
  expect(names).toContain("usage_export.visible_usage");
});
