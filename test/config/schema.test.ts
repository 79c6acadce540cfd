// The JSON Schema of the configuration, with which editors complete and check it.

import { expect, test } from "vitest";
import { z } from "zod";
import { FeatureName } from "../../src/config/fields.ts";
import { configJsonSchema } from "../../src/config/schema.ts";
import { DOCUMENTED_FEATURES } from "../../src/usage/dimensions.ts";
import { SAMPLE } from "./sample-config.ts";

type Schema = { readonly properties?: Readonly<Record<string, Schema>>; readonly items?: Schema };

test("jobs.config.schema.json is the current schema", async () => {
  await expect(`${JSON.stringify(configJsonSchema(), null, 2)}\n`).toMatchFileSnapshot("../../jobs.config.schema.json");
});

test("the schema has a version, a title and a description of every field", () => {
  expect(configJsonSchema()).toMatchObject({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: expect.any(String),
  });
  expect(fieldsWithoutDescription(configJsonSchema(), "")).toEqual([]);
});

test("the schema refuses an unknown field", () => {
  const schema = z.fromJSONSchema({ ...configJsonSchema() });
  expect(schema.safeParse(SAMPLE).error).toBeUndefined();
  expect(schema.safeParse({ ...SAMPLE, export: [] }).success).toBe(false);
});

test("sample-config.ts has every field that the schema has outside anyOf", () => {
  const used = new Set(fieldsOf(SAMPLE, ""));
  expect(schemaFields(configJsonSchema(), "").filter((field) => !used.has(field))).toEqual([]);
});

test("a filter can name every documented feature", () => {
  expect(DOCUMENTED_FEATURES.filter((name) => !FeatureName.safeParse(name).success)).toEqual([]);
});

/** The paths of all values, such as ".exports[].name". */
function fieldsOf(value: unknown, path: string): string[] {
  if (Array.isArray(value)) return [path, ...value.flatMap((one) => fieldsOf(one, `${path}[]`))];
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([name, inner]) => fieldsOf(inner, `${path}.${name}`))];
}

/** Leaves out the alternative forms of a value, which are inside `anyOf`. */
function schemaFields({ properties = {}, items }: Schema, path: string): string[] {
  const inner = Object.entries(properties).flatMap(([name, schema]) => schemaFields(schema, `${path}.${name}`));
  return [path, ...inner, ...(items ? schemaFields(items, `${path}[]`) : [])];
}

function fieldsWithoutDescription(schema: unknown, path: string): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([name, value]) => {
    const inner = fieldsWithoutDescription(value, `${path}.${name}`);
    const isField = path.endsWith(".properties");
    return isField && !("description" in Object(value)) ? [`${path}.${name}`, ...inner] : inner;
  });
}
