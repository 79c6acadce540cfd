// Builds the answer of Get Fields: what was used in a period and can be filtered by. Pure.

import { modelId } from "./catalogue.ts";
import type { UsageRecord } from "./usage-record.ts";

export function fieldsOf(records: readonly UsageRecord[]): Readonly<Record<string, unknown>> {
  const models = distinct(records.flatMap(({ model }) => model ?? []));
  return {
    tags: distinct(records.flatMap(({ tags }) => tags ?? [])),
    models: models.map((name) => ({ name, language: "en", version: "2026-01-09.0", model_id: modelId(name) })),
    processing_methods: distinct(records.flatMap(({ method }) => method ?? [])),
    features: distinct(records.flatMap(({ feature_set }) => feature_set ?? [])),
  };
}

function distinct(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort();
}
