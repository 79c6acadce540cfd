// Runs the statements of the dashboards on an empty database, and on one with usage, without and with billing.

import { expect, test } from "vitest";
import { testDatabase } from "../support/database.ts";
import { firstChoices, openReader } from "./asking.ts";
import { DASHBOARDS, QUERIES, viewsOf } from "./dashboards.ts";
import { DAY, DAYS_STORED, FILTERED_DAY, storeBilling, storeSample } from "./stored-sample.ts";

const [stored, empty] = [await testDatabase(), await testDatabase()];
const sample = await storeSample(stored.db);
const range = { from: sample.from, to: new Date() };
const onStored = await openReader(stored.url, range);
const onEmpty = await openReader(empty.url, range);

const annotationQueries = DASHBOARDS.flatMap((dashboard) =>
  dashboard.annotations.list.map(({ name, target: { rawSql } }) => ({ name, dashboard, rawSql })),
);
const usageQueries = [...QUERIES.filter((one) => one.dashboard.uid !== "usage-export-trust"), ...annotationQueries];
const beforeBilling: unknown[] = [];
for (const query of usageQueries) beforeBilling.push(await onStored.askAsOpened(query));
await storeBilling(stored.db, sample);

/** The first statement of the panel. */
function queryOf(title: string) {
  const query = QUERIES.find(({ panel }) => panel.title === title);
  if (!query) throw new Error(`there is no panel ${title}`);
  return query;
}

/** Type ids of Postgres. */
const [TEXT, DATE] = [25, 1082];
/** date, timestamp and timestamptz. */
const TIMES = [DATE, 1114, 1184];
/** int8, int2, int4, float4, float8 and numeric: the types that Grafana reads as numbers. */
const NUMBERS = [20, 21, 23, 700, 701, 1700];

const COUNT_UNITS = ["short", "locale"];
/** The unit of each column with numbers that are not plain counts. */
const UNITS: ReadonlyMap<string, string> = new Map([
  ...["hours", "total_hours", "agent_hours"].map((name) => [name, "suffix:h"] as const),
  ...["days", "days_behind", "days_late", "age_days"].map((name) => [name, "suffix:d"] as const),
  ...["tokens_in", "tokens_out"].map((name) => [name, "suffix:tokens"] as const),
  ["tts_characters", "suffix:characters"],
  ["duration", "s"],
  ...["requests_known", "hours_known"].map((name) => [name, "percentunit"] as const),
  // The unit of these numbers is in another column, or each number is shown as a text.
  ...["total", "sum_of_groups", "difference", "old_value", "new_value", "status"].map(
    (name) => [name, "none"] as const,
  ),
]);

const queriesOfUsageViews = QUERIES.filter(({ rawSql }) => viewsOf(rawSql).some((view) => view.startsWith("usage_")));

test.each(QUERIES)("$name returns rows", async (query) => {
  expect((await onStored.askAsOpened(query)).rows.length).toBeGreaterThan(0);
});

test.each(QUERIES)("$name returns only nulls and zeros from a database without usage", async (query) => {
  const { rows } = await onEmpty.askAsOpened(query);
  expect(rows.flatMap((row) => Object.values(row)).filter((value) => value !== null && value !== "0")).toEqual([]);
});

test("billing changes nothing that is shown about usage", async () => {
  for (const [i, query] of usageQueries.entries()) {
    expect([query.name, await onStored.askAsOpened(query)]).toEqual([query.name, beforeBilling[i]]);
  }
});

test("billing has lines of its own in the chart of coverage", async () => {
  const { rows } = await onStored.askAsOpened(queryOf("Coverage by series and day"));
  const ofProject = rows.filter(({ metric }) => metric === `${sample.projects[0]?.name} / billing / none / all`);
  // The oldest day comes first: 4 is missing, 0 complete, 3 failed.
  expect(ofProject.map(({ status }) => status)).toEqual(["4", "4", "0", "0", "3", "0"]);
});

test.each(["Freshness", "Gaps"])("%s names the source of each row", async (title) => {
  const sources = (await onStored.askAsOpened(queryOf(title))).rows.map(({ source }) => source);
  expect(new Set(sources)).toEqual(new Set(["usage", "billing"]));
});

test("the changed numbers of a series are those of its source", async () => {
  const { dashboard, rawSql } = queryOf("Numbers that changed");
  const changed = async (source: string) => {
    const series = JSON.stringify([sample.projects[0]?.id, "none", "all", source]);
    const values = firstChoices(dashboard, await onStored.optionsOf(dashboard));
    const { rows } = await onStored.ask(rawSql, { ...values, series });
    return rows.map((row) => [row.metric, row.unit, Number(row.new_value)]);
  };
  expect(await changed("billing")).toEqual([["dollars", "dollars", 1.5]]);
  expect((await changed("usage")).map(([metric]) => metric)).toEqual(expect.not.arrayContaining(["dollars"]));
  expect((await changed("usage")).length).toBeGreaterThan(0);
});

test.each(QUERIES)("$name gives each number and each day its unit", async (query) => {
  const { fields } = await onStored.askAsOpened(query);
  const { defaults, overrides } = query.panel.fieldConfig ?? { defaults: {}, overrides: [] };
  const byName = new Map(
    overrides.map(({ matcher, properties }) => [matcher.options, properties.find(({ id }) => id === "unit")?.value]),
  );
  const isTable = query.panel.type === "table";
  // A default unit of a table would also be put after text that looks like a number.
  if (isTable) expect(defaults.unit).toBeUndefined();
  expect(fields.map(({ name }) => name)).toEqual(expect.arrayContaining([...byName.keys()]));
  for (const { name, type } of fields) {
    const unit = byName.get(name) ?? defaults.unit;
    if (type === DATE && isTable) expect([name, unit]).toEqual([name, "time:YYYY-MM-DD"]);
    if (NUMBERS.includes(type)) expect([name, unit]).toEqual([name, UNITS.get(name) ?? expect.toBeOneOf(COUNT_UNITS)]);
  }
});

test.each(QUERIES.filter(({ panel }) => panel.targets[0]?.format === "time_series"))(
  "$name has ordered times, one column of names, and one of numbers",
  async (query) => {
    const { fields, rows } = await onStored.askAsOpened(query);
    expect(fields.map(({ name }) => name).slice(0, 2)).toEqual(["time", "metric"]);
    expect(TIMES).toContain(fields[0]?.type);
    expect(fields.slice(2).map(({ type }) => NUMBERS.includes(type))).toEqual([true]);
    const times = rows.map(({ time }) => String(time));
    expect(times).toEqual(times.toSorted());
    expect(new Set(rows.map(({ time, metric }) => JSON.stringify([time, metric]))).size).toBe(rows.length);
    expect(rows.filter(({ time, metric }) => time === null || metric === null)).toEqual([]);
  },
);

test.each(QUERIES.filter(({ panel }) => panel.type === "barchart"))(
  "$name labels its bars with a text column",
  async (query) => {
    const { fields } = await onStored.askAsOpened(query);
    expect(fields.find(({ name }) => name === query.panel.options?.xField)?.type).toBe(TEXT);
  },
);

test.each(queriesOfUsageViews)("$name counts no usage twice", async ({ dashboard, rawSql }) => {
  const options = await onStored.optionsOf(dashboard);
  const isFiltered = viewsOf(rawSql).includes("usage_filtered");
  const amounts = isFiltered ? FILTERED_DAY : DAY;
  const projectCount = isFiltered ? 1 : sample.projects.length;
  const countWithHours = isFiltered ? 1 : projectCount - 1;
  const series = isFiltered ? (options.filtered ?? []).filter((one) => !one.includes(sample.silent.id)) : [""];
  for (const filtered of series) {
    const { fields, rows } = await onStored.ask(rawSql, { ...firstChoices(dashboard, options), filtered });
    const total = (column: string) => rows.reduce((sum, row) => sum + Number(row[column]), 0);
    for (const { name } of fields) {
      if (name === "requests") expect(total(name)).toBe(projectCount * DAYS_STORED * amounts.requests);
      if (name === "hours") expect(total(name)).toBe(countWithHours * DAYS_STORED * amounts.hours);
    }
  }
});

test.each(queriesOfUsageViews.filter(({ rawSql }) => rawSql.includes("hours")))(
  "$name leaves the hours empty if the service did not send any",
  async ({ dashboard, rawSql }) => {
    const options = await onStored.optionsOf(dashboard);
    const filtered = options.filtered?.find((one) => one.includes(sample.silent.id)) ?? "";
    const { rows } = await onStored.ask(rawSql, {
      ...firstChoices(dashboard, options),
      project: [sample.silent.id],
      filtered,
    });
    expect(rows.length).toBeGreaterThan(0);
    expect(new Set(rows.map(({ hours }) => hours))).toEqual(new Set([null]));
  },
);

test("a chart by API key has one line for all keys of each of the two rotations", async () => {
  const { rows } = await onStored.askAsOpened(queryOf("Requests by day and API key"));
  const lines = rows.map(({ metric }) => String(metric).replace(/^(rotation|id-of)-.*/, "$1"));
  expect(new Set(lines)).toEqual(new Set(["rotation", "id-of", "made in the console", "(no value)"]));
  expect(new Set(rows.map(({ metric }) => metric).filter((line) => line?.startsWith("rotation"))).size).toBe(2);
});

test("each day that is not complete is marked, with the number of series and their status", async () => {
  expect(annotationQueries).toHaveLength(1);
  for (const query of annotationQueries) {
    const { fields, rows } = await onStored.askAsOpened(query);
    const types = Object.fromEntries(fields.map(({ name, type }) => [name, type]));
    expect(types).toEqual({ time: DATE, timeend: DATE, text: TEXT, tags: TEXT });
    // Each of the three projects has five groupings, and two filters with two groupings each.
    const texts = ["27 of 27 series: missing", "27 of 27 series: failed", "3 of 27 series: suspect"];
    expect(rows.map(({ text }) => text)).toEqual(texts);
    expect((await onEmpty.askAsOpened(query)).rows).toEqual([]);
  }
});
