// The JSON Schema of the configuration, by which editors help to write it.

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

test("sample-config.ts has every field, apart from the other forms of a value", () => {
  const used = new Set(fieldsOf(SAMPLE, ""));
  expect(schemaFields(configJsonSchema(), "").filter((field) => !used.has(field))).toEqual([]);
});

test("no dimension has the name of a documented feature, which a filter could not name then", () => {
  expect(DOCUMENTED_FEATURES.filter((name) => !FeatureName.safeParse(name).success)).toEqual([]);
});

/** The places of all values, such as ".exports[].name". */
function fieldsOf(value: unknown, place: string): string[] {
  if (Array.isArray(value)) return [place, ...value.flatMap((one) => fieldsOf(one, `${place}[]`))];
  if (typeof value !== "object" || value === null) return [place];
  return [place, ...Object.entries(value).flatMap(([name, inner]) => fieldsOf(inner, `${place}.${name}`))];
}

/** Does not look into `anyOf`, the forms of a value. */
function schemaFields({ properties = {}, items }: Schema, place: string): string[] {
  const inner = Object.entries(properties).flatMap(([name, schema]) => schemaFields(schema, `${place}.${name}`));
  return [place, ...inner, ...(items ? schemaFields(items, `${place}[]`) : [])];
}

function fieldsWithoutDescription(schema: unknown, place: string): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  return Object.entries(schema).flatMap(([name, value]) => {
    const inner = fieldsWithoutDescription(value, `${place}.${name}`);
    const isField = place.endsWith(".properties");
    return isField && !("description" in Object(value)) ? [`${place}.${name}`, ...inner] : inner;
  });
}
