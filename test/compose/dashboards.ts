// Reads the dashboards of compose/grafana, as far as the tests need them.

import fs from "node:fs";
import path from "node:path";
import { z } from "zod";

export const COMPOSE = path.join(import.meta.dirname, "../../compose");
const FOLDER = path.join(COMPOSE, "grafana/dashboards");

const source = z.object({ type: z.string(), uid: z.string() });
const target = z.object({
  refId: z.string(),
  datasource: source,
  editorMode: z.literal("code"),
  rawQuery: z.literal(true),
  format: z.enum(["table", "time_series"]),
  rawSql: z.string(),
});
const property = z.object({ id: z.string(), value: z.unknown() });
const panel = z.object({
  id: z.int(),
  type: z.string(),
  title: z.string(),
  description: z.string().optional(),
  gridPos: z.object({ h: z.int(), w: z.int(), x: z.int(), y: z.int() }),
  datasource: source.optional(),
  targets: z.array(target).default([]),
  fieldConfig: z
    .object({
      defaults: z.object({ unit: z.string().optional() }),
      overrides: z.array(
        z.object({
          matcher: z.object({ id: z.literal("byName"), options: z.string() }),
          properties: z.array(property),
        }),
      ),
    })
    .optional(),
  options: z.object({ xField: z.string().optional() }).optional(),
  // A transformation could add up series that the statement keeps apart.
  transformations: z.never().optional(),
});
const variable = z
  .object({
    name: z.string(),
    type: z.literal("query"),
    datasource: source,
    query: z.string(),
    multi: z.boolean(),
    includeAll: z.boolean(),
  })
  .refine(
    ({ name, multi, includeAll }) => (multi || includeAll) === (name === "project"),
    "only project has several values",
  );
const dashboardSchema = z.object({
  uid: z.string(),
  title: z.string(),
  editable: z.literal(false),
  timezone: z.literal("utc"),
  time: z.object({ from: z.literal("now-30d/d"), to: z.literal("now") }),
  templating: z.object({ list: z.array(variable) }),
  annotations: z.object({ list: z.array(z.object({ name: z.string(), datasource: source, target })) }),
  panels: z.array(panel),
});

export type Panel = z.infer<typeof panel>;
export type Dashboard = z.infer<typeof dashboardSchema>;

export const DASHBOARDS: readonly Dashboard[] = fs
  .readdirSync(FOLDER)
  .sort()
  .map((file) => dashboardSchema.parse(JSON.parse(fs.readFileSync(path.join(FOLDER, file), "utf8"))));

/** One statement of a panel. */
export type Query = Readonly<{ name: string; dashboard: Dashboard; panel: Panel; rawSql: string }>;

export const QUERIES: readonly Query[] = DASHBOARDS.flatMap((dashboard) =>
  dashboard.panels.flatMap((panel) =>
    panel.targets.map(({ rawSql }) => ({ name: `${dashboard.title}: ${panel.title}`, dashboard, panel, rawSql })),
  ),
);

/** The views of bi that a statement reads, each once. */
export function viewsOf(rawSql: string): readonly string[] {
  return [...new Set([...rawSql.matchAll(/\bbi\.(\w+)/g)].map(([, view = ""]) => view))];
}
