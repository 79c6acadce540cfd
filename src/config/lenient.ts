// The configuration as far as it can be read, for the checks across fields: the lenient parse never fails, and what is missing or of another
// kind is undefined or empty. A broken entry of a list keeps its index, because the paths of issues contain the index.

import { z } from "zod";
import { SOURCES } from "../usage/dimensions.ts";
import { groupingBy } from "../usage/series.ts";

const optionalText = z.string().optional().catch(undefined);
const optionalNumber = z.number().optional().catch(undefined);
const textList = z.array(optionalText).catch([]);
const entries = <Shape extends z.ZodRawShape>(shape: Shape) => z.array(lenientObject(shape)).catch([]);

function lenientObject<Shape extends z.ZodRawShape>(shape: Shape) {
  const schema = z.object(shape);
  return schema.catch(schema.parse({}, { jitless: true }));
}

const LenientGrouping = z
  .union([z.string(), z.array(z.string()).transform(groupingBy)])
  .optional()
  .catch(undefined);

export const LenientConfig = lenientObject({
  service: lenientObject({ dialect: optionalText }),
  projects: entries({
    id: optionalText,
    name: optionalText,
    key: lenientObject({ rotation: optionalText }),
    discover: z.unknown().optional(),
  }),
  exports: entries({
    name: optionalText,
    source: z.enum(SOURCES).catch("usage"),
    projects: textList,
    groupings: z.array(LenientGrouping).catch([]),
    filters: z.array(z.unknown()).optional().catch([]),
    window: z.unknown().optional(),
    undated: optionalText,
    checkFeatures: optionalText,
  }),
  rotations: entries({
    name: optionalText,
    project: optionalText,
    projects: z.array(optionalText).optional().catch(undefined),
    createWith: lenientObject({ rotation: optionalText, file: optionalText }),
    scopes: textList,
    tags: textList,
    maxAgeDays: optionalNumber,
    graceDays: optionalNumber,
    expiresInDays: optionalNumber,
    deliver: entries({ file: optionalText, command: textList }),
  }),
  prices: z.unknown().optional(),
  budgets: entries({ name: optionalText, project: optionalText }),
});

export const LenientFilter = lenientObject({
  dimensions: z.record(z.string(), optionalText).catch({}),
  features: z.record(z.string(), z.unknown()).catch({}),
});

export type LenientConfig = z.output<typeof LenientConfig>;
export type LenientProject = LenientConfig["projects"][number];
export type LenientExport = LenientConfig["exports"][number];
export type LenientRotation = LenientConfig["rotations"][number];
export type LenientFilter = z.output<typeof LenientFilter>;
