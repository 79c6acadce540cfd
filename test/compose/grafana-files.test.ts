// Checks of the dashboards that need no database: that Grafana finds them, and that no panel mixes series.

import fs from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { COMPOSE, DASHBOARDS, type Panel, QUERIES, viewsOf } from "./dashboards.ts";

/** Each of these views has one series of each project: all usage by one grouping. */
const ONE_GROUPING = /^usage_(total|by_\w+)$/;
/** These views have the amounts of many series, so they count the same usage several times. */
const MANY_SERIES = ["usage_filtered", "restatements"];
/** These views are about series, keys and runs. They have no amounts of usage that could be added up. */
const ABOUT_SERIES = ["coverage", "coverage_gaps", "freshness", "reconciliation", "runs", "api_keys"];

const read = (file: string) => fs.readFileSync(path.join(COMPOSE, file), "utf8");
const compose = read("../docker-compose.yml");

test("the dashboards keep their uids", () => {
  expect(DASHBOARDS.map(({ uid }) => uid)).toEqual(["usage-export-trust", "usage-export-usage"]);
});

test("panels, variables and annotations read the provisioned data source", () => {
  const provisioned = read("grafana/provisioning/datasources/usage-export.yml");
  const sources = DASHBOARDS.flatMap(({ panels, templating, annotations }) => [
    ...panels.flatMap(({ datasource, targets }) => [datasource, ...targets.map((target) => target.datasource)]),
    ...templating.list.map(({ datasource }) => datasource),
    ...annotations.list.flatMap(({ datasource, target }) => [datasource, target.datasource]),
  ]);
  for (const { type, uid } of sources.filter((one) => one !== undefined)) {
    expect(provisioned).toContain(`\n    type: ${type}\n`);
    expect(provisioned).toContain(`\n    uid: ${uid}\n`);
  }
});

test("compose mounts the dashboards where Grafana looks for them", () => {
  const [, folder] = /\n +path: (\S+)\n/.exec(read("grafana/provisioning/dashboards/usage-export.yml")) ?? [];
  expect(compose).toContain(`- ./compose/grafana/dashboards:${folder}:ro\n`);
});

test("compose sets every variable that the data source uses", () => {
  for (const [, name] of read("grafana/provisioning/datasources/usage-export.yml").matchAll(/: \$(\w+)/g)) {
    expect(compose).toMatch(new RegExp(`^ +${name}: `, "m"));
  }
});

test.each(DASHBOARDS)("in $title each panel has an id, a place and a description of its own", ({ panels }) => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
  const overlapping = panels.flatMap((one, i) => panels.slice(i + 1).filter((other) => overlap(one, other)));
  expect(overlapping).toEqual([]);
  for (const { title, gridPos, targets, description } of panels) {
    // Grafana's grid has 24 columns.
    expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
    if (targets.length > 0) expect([title, description]).toEqual([title, expect.stringMatching(/^[A-Z].{30,}\.$/)]);
  }
});

function overlap({ gridPos: a }: Panel, { gridPos: b }: Panel): boolean {
  return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
}

test.each(QUERIES)("$name adds up no amounts of several series", ({ rawSql }) => {
  const ownTables = [...rawSql.matchAll(/(\w+) as \(/g)].map(([, name]) => name);
  const tables = [...rawSql.replaceAll(/extract\(\w+ from/g, "").matchAll(/\b(?:from|join) ([\w.]+)/g)];
  const others = tables.map(([, name = ""]) => name).filter((name) => !ownTables.includes(name));
  const [view = "", ...more] = viewsOf(rawSql);
  expect(more).toEqual([]);
  expect(new Set(others)).toEqual(new Set([`bi.${view}`]));

  if (ONE_GROUPING.test(view)) return;
  expect([...MANY_SERIES, ...ABOUT_SERIES]).toContain(view);
  if (!MANY_SERIES.includes(view)) return expect(rawSql).not.toMatch(/\b(sum|avg)\(/);
  for (const [i, column] of ["project_id", '"grouping"', "filter"].entries()) {
    const condition = `(where|and) (\\w\\.)?${column} = nullif\\(\\$\\{(series|filtered):sqlstring\\}, ''\\)::json ->> ${i}\\b`;
    expect(rawSql).toMatch(new RegExp(condition));
  }
});
