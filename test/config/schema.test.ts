// The JSON Schema of the configuration, by which editors help to write it.

import { expect, test } from "vitest";
import { z } from "zod";
import { configJsonSchema } from "../../src/config/schema.ts";
import { SAMPLE } from "./sample-config.ts";

test("jobs.config.schema.json is the current schema", async () => {
  await expect(`${JSON.stringify(configJsonSchema(), null, 2)}\n`).toMatchFileSnapshot("../../jobs.config.schema.json");
});

test("the schema names the JSON Schema version and a title for editors, and describes every field", () => {
  expect(configJsonSchema()).toMatchObject({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: expect.any(String),
  });
  expect(fieldsWithoutDescription(configJsonSchema(), "")).toEqual([]);
});

test("the schema accepts a valid configuration, and refuses an unknown field", () => {
  const schema = z.fromJSONSchema({ ...configJsonSchema() });
  expect(schema.safeParse(SAMPLE).error).toBeUndefined();
  expect(schema.safeParse({ ...SAMPLE, export: [] }).success).toBe(false);
});

function fieldsWithoutDescription(schema: unknown, place: string): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([name, value]) => {
    const inner = fieldsWithoutDescription(value, `${place}.${name}`);
    const isField = place.endsWith(".properties");
    return isField && !("description" in Object(value)) ? [`${place}.${name}`, ...inner] : inner;
  });
}
