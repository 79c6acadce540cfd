// The page Usage, made from a real database. Its links are followed as a visitor would.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { storeListedKeys } from "../../../src/db/project-facts.ts";
import type { Filter } from "../../../src/usage/series.ts";
import type { Page } from "../../../src/web/page.ts";
import { storeFormerKeys } from "../../db/keys/written-ledger.ts";
import { DIARIZED, forgetAll, storeSeries } from "../../db/reported-usage.ts";
import { storePriceBook } from "../../db/stored-costs.ts";
import { daysBack, newProject } from "../../db/stored-usage.ts";
import { STORABLE_NAMES } from "../../show/hostile-names.ts";
import { testDatabase } from "../../support/database.ts";
import { usageSite } from "../usage-site.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

/** Asks a new server, whose cache of pages is empty. */
async function pageAt(query: string, path = "/usage"): Promise<Page | undefined> {
  return usageSite(db)[path]?.(new URLSearchParams(query.replaceAll("&amp;", "&")));
}

async function open(query: string, path?: string): Promise<string> {
  return (await pageAt(query, path))?.body ?? "";
}

/** The query of the link with this text. */
function linkOf(page: string, text: string): string {
  const links = [...page.matchAll(/<a href="\.\/usage([^"]*)"[^>]*>(.*?)<\/a>/gs)];
  const [, query = ""] = links.find(([, , shown = ""]) => shown.replaceAll(/<[^>]*>/g, "").trim() === text) ?? [];
  if (query === "") throw new Error(`no link ${text} among ${links.map(([, , shown]) => shown)}`);
  return query.replaceAll("&amp;", "&");
}

/** The cells of the rows of the groups' table, without markup, and amounts with every digit. */
function rowsOf(page: string): readonly (readonly string[])[] {
  const [table = ""] = /<table[\s\S]*?<\/table>/.exec(page.split('<div class="ranks">')[1] ?? "") ?? [];
  const exact = table.replaceAll(/<data value="([^"]*)".*?<\/data>/g, "$1");
  return [...exact.matchAll(/<tr>(.*?)<\/tr>/gs)]
    .slice(1)
    .map(([, row = ""]) =>
      [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/gs)].map(([, cell = ""]) => cell.replaceAll(/<[^>]*>/g, "").trim()),
    );
}

const DAYS = `from=${back(2)}&to=${back(1)}`;
/** The two days, and the week before: the page compares each day with the same weekday of that week. */
const DUE = { start: back(9), end: back(1) };

/** The hours of each model. */
type Models = Readonly<Record<string, readonly [yesterday: string, weekBefore: string]>>;

async function storeModels(models: Models, filters: readonly Filter[] = []) {
  await forgetAll(db);
  const project = newProject();
  const [yesterday, weekBefore] = [0, 1] as const;
  const rows = (at: 0 | 1) => Object.entries(models).map(([name, amounts]) => [name, { hours: amounts[at] }] as const);
  const usage = { [back(1)]: rows(yesterday), [back(2)]: [], [back(8)]: rows(weekBefore), [back(9)]: [] };
  const series = { project, grouping: "model", usage, due: DUE, windowDays: 1 } as const;
  await storeSeries(db, [series, ...filters.map((filter) => ({ ...series, filter }))]);
  return project;
}

test("each row of exact amounts leads to its group alone", async () => {
  await storeModels({ "nova-3": ["1234567.8901", "1000000"], "aura-2": ["0.5", "1"], unused: ["0", "0"] });
  const page = await open(`${DAYS}&limit=100`);
  expect(rowsOf(page)).toEqual([
    ["nova-3", "1234567.8901", "1000000", "234567.8901", "+23%"],
    ["aura-2", "0.5", "1", "-0.5", "-50%"],
    ["Total", "1234568.3901", "1000001", "234567.3901", "+23%"],
  ]);
  const narrowed = await open(linkOf(page, "aura-2"));
  expect(rowsOf(narrowed)).toEqual([["aura-2", "0.5", "1", "-0.5", "-50%"]]);
  // The only row is no link: it would lead to this page.
  expect(narrowed).toContain('<th scope="row"><bdi>aura-2</bdi></th>');
  expect(rowsOf(await open(linkOf(narrowed, "show every model")))).toHaveLength(3);
});

test("the page offers its answer as SQL, CSV and JSON", async () => {
  await storeModels({ "nova-3": ["1", "1"] });
  const page = await open(`${DAYS}&limit=100`);
  expect(page).toMatch(
    /<button type="button" class="copy" hidden data-copy="(select usage_date, model as[^"<>]+)">Copy SQL<.*<code>\1</,
  );
  expect(page).toContain(`href="api/v1/usage.csv?from=${back(2)}&amp;to=${back(1)}&amp;limit=100&amp;rows=groups"`);
  expect(page).toContain(`href="api/v1/usage?from=${back(2)}&amp;to=${back(1)}&amp;limit=100"`);
});

test("the links to files of this month so far name its first and last day", async () => {
  await storeModels({ "nova-3": ["1", "1"] });
  const page = await open("period=this-month");
  expect(page).toMatch(/href="api\/v1\/usage\.csv\?from=\d{4}-\d{2}-01&amp;to=[\d-]+&amp;rows=groups"/);
  expect(page).toMatch(/href="\.\/report\.html\?from=\d{4}-\d{2}-01&amp;to=[\d-]+"/);
});

test("a link of the page changes only one part of the question", async () => {
  const models = Array.from({ length: 25 }, (_, i) => [`m${i + 10}`, [`${i + 1}`, `${50 - i}`] as const] as const);
  await storeModels(Object.fromEntries(models));
  const page = await open(DAYS);
  const largest = Array.from({ length: 20 }, (_, i) => `m${34 - i}`);
  expect(rowsOf(page).map(([name]) => name)).toEqual([...largest, "5 others", "Total"]);
  expect(rowsOf(await open(linkOf(page, "5 others")))).toHaveLength(25 + 1);
  const sorted = await open(linkOf(page, "Difference"));
  // m10 has changed most, from 50 to 1.
  expect(rowsOf(sorted)[0]?.[0]).toBe("m10");
  const weekly = await open(linkOf(page, "week"));
  expect(rowsOf(weekly)).toEqual(rowsOf(page));
  expect(weekly).toContain("Exact hours by week and model");
  // The files have days and not weeks; the API would refuse "by".
  expect(weekly).toContain(`href="api/v1/usage.csv?from=${back(2)}&amp;to=${back(1)}&amp;rows=groups"`);
  expect(linkOf(sorted, "7 days")).toBe("?period=7d&sort=change");
  expect(sorted).toContain('<input type="hidden" name="sort" value="change">');
});

test("reasons for a change of all usage name the group that changed the most", async () => {
  const steady = Array.from({ length: 6 }, (_, i) => [`steady-${i}`, ["100", "100"] as const] as const);
  await storeModels({ ...Object.fromEntries(steady), small: ["1", "50"] }, [DIARIZED]);
  expect(await open(DAYS)).toContain("<li>By model: small -49 hours.</li>");
  for (const part of [`filter=${DIARIZED.name}`, "group=small"])
    expect(await open(`${DAYS}&${part}`)).not.toContain("What changed");
});

test("missing days are marked above the numbers, in the table and in the chart", async () => {
  await forgetAll(db);
  const [one, other] = [newProject(), newProject()];
  const usage = { [back(1)]: [["nova-3", { hours: "1" }] as const] };
  await storeSeries(db, [
    { project: one, grouping: "model", usage, due: DUE },
    { project: other, grouping: "endpoint", usage: {} },
  ]);
  const page = await open(DAYS);
  // A day without numbers is called missing, not too low.
  expect(page).toMatch(
    /class="notice bad"[\s\S]*There are no numbers for .*, which could not be read\.[\s\S]*Data health<\/a> says/,
  );
  expect(page).toMatch(/Not compared .* 1 day of this period is not complete/);
  expect(page).toContain(`Not in these figures, because their usage is not read in this way: ${other.name}.`);
  expect(page).toMatch(new RegExp(`<time>${back(2)}</time> <b class="flag">not complete</b>`));
  expect(page.replaceAll("&quot;", '"')).toMatch(/"incomplete":\[\d/);
});

test("without usage the page says what to do", async () => {
  await storeModels({ "nova-3": ["1", "1"] });
  expect(await open(`${DAYS}&metric=requests`)).toContain("No requests on these days.");
  const page = await open(`${DAYS}&grouping=tags`);
  expect(page).toContain("Usage by tags is not exported");
  expect(rowsOf(await open(linkOf(page, "by model")))).toHaveLength(2);
  await forgetAll(db);
  const before = await open(DAYS);
  expect(before).toContain("No usage has been read yet.");
  expect(before).not.toContain("Not compared");
});

test("tags are neither added up nor stacked", async () => {
  await forgetAll(db);
  const usage = { [back(1)]: [[["a", "b"], { hours: "1" }] as const, [["a"], { hours: "2" }] as const] };
  await storeSeries(db, [{ project: newProject(), grouping: "tags", usage, due: DUE }]);
  const page = await open(`${DAYS}&grouping=tags&compare=none`);
  expect(rowsOf(page).map((row) => row.join(" "))).toEqual(["a 2", "a b 1"]);
  expect(page.replaceAll("&quot;", '"')).toContain('"kind":"lines"');
  const one = await open(`${DAYS}&grouping=tags&compare=none&limit=1`);
  expect(rowsOf(one).map((row) => row.join(" "))).toEqual(["a 2", "1 other not added up"]);
});

test("a group of keys stays the same under a filter", async () => {
  await forgetAll(db);
  const project = newProject();
  await storeFormerKeys(db, "nightly", project, ["key-1", "key-2"]);
  const rows = ["key-1", "key-2", "other"].map((key) => [key, { hours: "1" }] as const);
  const series = { project, grouping: "accessor", usage: { [back(1)]: rows, [back(2)]: [] }, due: DUE } as const;
  await storeSeries(db, [series, { ...series, filter: DIARIZED }]);
  const narrowed = await open(`${DAYS}&grouping=accessor&group=nightly&compare=none`);
  expect(rowsOf(narrowed)).toEqual([["nightly", "2"]]);
  expect(narrowed).toContain('<input type="hidden" name="group" value="nightly">');
  expect(narrowed).toContain(`<option value="${DIARIZED.name}">`);
  const filtered = `${DAYS}&grouping=accessor&group=nightly&compare=none&filter=${DIARIZED.name}`;
  expect(rowsOf(await open(filtered))).toEqual([["nightly", "2"]]);
});

test("API keys are shown by their comments in the table and the chart", async () => {
  await forgetAll(db);
  const project = newProject();
  const rows = ["key-1", "key-2", "key-3", "key-4"].map((key, i) => [key, { hours: String(9 - i) }] as const);
  await storeSeries(db, [{ project, grouping: "accessor", usage: { [back(1)]: rows, [back(2)]: [] }, due: DUE }]);
  const comments = { "key-1": "billing <b>", "key-2": "the same", "key-3": "the same", "key-4": "" };
  for (const [key, comment] of Object.entries(comments))
    await sql`
      insert into usage_export.listed_key (project_id, api_key_id, comment, scopes) values (${project.id}, ${key}, ${comment}, '{}')
    `.execute(db);
  const page = await open(`${DAYS}&grouping=accessor&compare=none`);
  const names = ["billing &lt;b&gt;", "the same (key-2)", "the same (key-3)", "key-4", "Total"];
  expect(rowsOf(page).map(([name]) => name)).toEqual(names);
  expect(page).toContain('<bdi title="key-1">billing &lt;b&gt;</bdi>');
  expect(page.replaceAll("&quot;", '"')).toContain('"name":"billing \\u003cb>","hint":"billing \\u003cb>"');
  const narrowed = await open(linkOf(page, "billing &lt;b&gt;"));
  expect(narrowed).toContain("lineage = &#39;key-1&#39;");
  expect(narrowed).toContain("Only API key <bdi>billing &lt;b&gt;</bdi> (<bdi>key-1</bdi>)");
});

test("API keys with one comment are told apart by their projects", async () => {
  for (const [name, shown] of [
    ["production", "batch (production"],
    ["Customer Experience Analytics, region", "batch (Customer Experience … region"],
  ]) {
    await forgetAll(db);
    for (const n of [1, 2]) {
      const project = { ...newProject(), name: `${name} ${n}` };
      const usage = { [back(1)]: [[`key-${n}`, { hours: "1" }] as const], [back(2)]: [] };
      await storeSeries(db, [{ project, grouping: "accessor", usage, due: DUE }]);
      await storeListedKeys(db, project.id, [{ apiKeyId: `key-${n}`, comment: "batch", scopes: [] }]);
    }
    const rows = rowsOf(await open(`${DAYS}&grouping=accessor`));
    expect(rows.map(([first]) => first)).toEqual([`${shown} 1)`, `${shown} 2)`, "Total"]);
  }
});

test("hostile names are text", async () => {
  await storeModels(Object.fromEntries(STORABLE_NAMES.map((name) => [name, ["1", "0"]])));
  const page = await open(`${DAYS}&limit=100`);
  expect(rowsOf(page)).toHaveLength(new Set(STORABLE_NAMES).size + 1);
  expect(page).not.toMatch(/<script>|<img/i);
  for (const name of STORABLE_NAMES) {
    const narrowed = await open(`${DAYS}&${new URLSearchParams({ group: name })}`);
    expect(rowsOf(narrowed)).toHaveLength(1);
    expect(narrowed).not.toMatch(/<script>|<img/i);
  }
});

test("a wrong parameter is a page that names it", async () => {
  const page = await pageAt("metric=hour");
  expect(page?.status).toBe(400);
  expect(page?.body).toContain("metric: Invalid option: expected one of");
});

test("where prices are configured, the page and its links begin with the cost", async () => {
  await storeModels({ "nova-3": ["20", "10"] });
  await storePriceBook(db, { metric: "hours", model: "*", currency: "USD", price: "0.5", from: "2020-01-01" });
  const page = await open(DAYS);
  expect(rowsOf(page)[0]).toEqual(["nova-3", "10", "5", "5", "+100%"]);
  expect(page).toContain("Estimated cost: usage at the configured prices.");
  expect(linkOf(page, "week")).toContain("metric=estimated_cost&grouping=model");
  expect(page).toContain('<input type="hidden" name="grouping" value="model">');
  expect(page).toContain("metric=estimated_cost&amp;grouping=model&amp;rows=groups");
  expect(rowsOf(await open(`${DAYS}&grouping=model`))[0]?.[1]).toBe("20");
});
