// What the checks across the file read, however broken the rest is: so that one wrong field does not hide the others.

import { z } from "zod";
import { DIMENSIONS, type Filter } from "../usage/series.ts";

const text = z.string().optional().catch(undefined);
const texts = z.array(text).catch([]);
const number = z.number().optional().catch(undefined);

const Project = z.object({
  id: text,
  name: text,
  key: z.object({ rotation: text }).catch({ rotation: undefined }),
});

const Export = z.object({
  name: text,
  projects: texts,
  groupings: texts,
  filters: z.array(z.unknown()).optional().catch([]),
  window: z.unknown().optional(),
  undated: text,
  checkFeatures: text,
});

const Rotation = z.object({
  name: text,
  project: text,
  createWith: z.object({ rotation: text, file: text }).catch({ rotation: undefined, file: undefined }),
  scopes: texts,
  tags: texts,
  maxAgeDays: number,
  graceDays: number,
  expiresInDays: number,
  deliver: z.array(z.object({ file: text }).catch({ file: undefined })).catch([]),
});

/** A list whose broken entries keep their place, since faults are named by it. */
function list<Entry extends z.ZodType>(entry: Entry): z.ZodType<z.output<Entry>[]> {
  const broken = entry.parse({});
  return z.array(entry.catch(broken)).catch([]);
}

const Outline = z.object({
  service: z.object({ dialect: text }).catch({ dialect: undefined }),
  projects: list(Project),
  exports: list(Export),
  rotations: list(Rotation),
});

export type Outline = z.output<typeof Outline>;

/** Never throws: what is missing or of another kind is undefined or empty. */
export function outlineOf(value: unknown): Outline {
  return Outline.catch(Outline.parse({})).parse(value);
}

const ByFeatureSet = z.object({ dimensions: z.object({ feature_set: z.unknown().nonoptional() }) });

/** Whether the filter, as it stands in the file, narrows by feature set. */
export function narrowsByFeatureSet(filter: unknown): boolean {
  return ByFeatureSet.safeParse(filter).success;
}

const ByDimensions = z.object({ dimensions: z.partialRecord(z.enum(DIMENSIONS), text) });

/** The dimensions of an unvalidated filter, as far as they can be read. */
export function dimensionsIn(filter: unknown): Filter["dimensions"] {
  const parsed = ByDimensions.safeParse(filter);
  if (!parsed.success) return {};
  return Object.fromEntries(Object.entries(parsed.data.dimensions).filter(([, value]) => value !== undefined));
}
