// The part of the configuration that checks.ts reads, parsed without ever failing, so that one wrong field does not hide the
// issues of others. Pure.

import { z } from "zod";
import { DIMENSIONS, type Filter } from "../usage/series.ts";

const optionalText = z.string().optional().catch(undefined);
const textList = z.array(optionalText).catch([]);
const optionalNumber = z.number().optional().catch(undefined);

const Project = z.object({
  id: optionalText,
  name: optionalText,
  key: z.object({ rotation: optionalText }).catch({ rotation: undefined }),
});

const Export = z.object({
  name: optionalText,
  projects: textList,
  groupings: textList,
  filters: z.array(z.unknown()).optional().catch([]),
  window: z.unknown().optional(),
  undated: optionalText,
  checkFeatures: optionalText,
});

const Rotation = z.object({
  name: optionalText,
  project: optionalText,
  createWith: z.object({ rotation: optionalText, file: optionalText }).catch({ rotation: undefined, file: undefined }),
  scopes: textList,
  tags: textList,
  maxAgeDays: optionalNumber,
  graceDays: optionalNumber,
  expiresInDays: optionalNumber,
  deliver: z.array(z.object({ file: optionalText }).catch({ file: undefined })).catch([]),
});

/** A list whose broken entries keep their place, since faults are named by it. */
function lenientList<Entry extends z.ZodType>(entry: Entry): z.ZodType<z.output<Entry>[]> {
  const broken = entry.parse({});
  return z.array(entry.catch(broken)).catch([]);
}

const Outline = z.object({
  service: z.object({ dialect: optionalText }).catch({ dialect: undefined }),
  projects: lenientList(Project),
  exports: lenientList(Export),
  rotations: lenientList(Rotation),
});

export type LenientConfig = z.output<typeof Outline>;

/** Never throws: what is missing or of another kind is undefined or empty. */
export function lenientParse(value: unknown): LenientConfig {
  return Outline.catch(Outline.parse({})).parse(value);
}

const ByFeatureSet = z.object({ dimensions: z.object({ feature_set: z.unknown().nonoptional() }) });

/** Whether the filter, as it stands in the file, narrows by feature set. */
export function narrowsByFeatureSet(filter: unknown): boolean {
  return ByFeatureSet.safeParse(filter).success;
}

const ByDimensions = z.object({ dimensions: z.partialRecord(z.enum(DIMENSIONS), optionalText) });

/** The dimensions of an unvalidated filter, as far as they can be read. */
export function dimensionsIn(filter: unknown): Filter["dimensions"] {
  const parsed = ByDimensions.safeParse(filter);
  if (!parsed.success) return {};
  return Object.fromEntries(Object.entries(parsed.data.dimensions).filter(([, value]) => value !== undefined));
}
