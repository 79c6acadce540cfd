import { expect, test } from "vitest";
import { storedValues } from "../../../src/db/usage/stored-series.ts";
import { testDatabase } from "../../support/database.ts";
import { configured, newProject, register, store } from "../stored-usage.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";

test("a small project's values are seen beside those of projects with thousands of larger ones", async () => {
  const [large, small] = [newProject(), newProject()];
  const [largeId, smallId] = await register(db, configured(large, "accessor"), configured(small, "accessor"));
  const keys = Array.from({ length: 5_001 }, (_, i): [string, string] => [`key ${i}`, "1000"]);
  await store(db, largeId, { [DAY]: keys });
  await store(db, smallId, { [DAY]: { rarely: "1", often: "2" } });
  const values = await storedValues(
    db,
    [large.id, small.id],
    { dimension: "accessor", atMost: 50 },
    { start: DAY, end: DAY },
  );
  expect(values.find(({ projectId }) => projectId === large.id)).toMatchObject({ count: 5_001 });
  expect(values.length).toBeLessThan(1_000);
  const ofSmall = values.filter(({ projectId }) => projectId === small.id);
  expect(ofSmall.map(({ value }) => value)).toEqual(["often", "rarely"]);
});
