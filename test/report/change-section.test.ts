// The section on why usage changed: its words, its waterfall and its table.

import { expect, test } from "vitest";
import { changeSection } from "../../src/report/change-section.ts";
import type { MetricChange } from "../../src/report/usage-change.ts";
import { makeReportData } from "./make-report-data.ts";

const data = makeReportData();
const { change } = data;
const [metric] = change.metrics;

function section(part: Partial<MetricChange> = {}): string {
  if (!metric) throw new Error("the data have no metric");
  return String(changeSection({ ...data, change: { ...change, metrics: [{ ...metric, ...part }] } })?.body);
}

function bars(body: string): number {
  const [, wide = ""] = /<svg class="wide"[\s\S]*?>([\s\S]*?)<\/svg>/.exec(body) ?? [];
  return [...wide.matchAll(/<path[^>]*fill="var\(--(rest|series-\d)\)"/g)].length;
}

test("it says first how usage changed, then why", () => {
  const body = section();
  expect(body).toMatch(/^<p>Hours rose by 14\.7%, from 1,000 .*<\/p>/);
  expect(body).toContain("<li>By model, <bdi>nova-3</bdi> accounts for +210 of +147, ");
});

test("every part that changed has a bar, between the amount before and the amount after", () => {
  const changed = metric?.breakdowns[0]?.parts.filter((part) => part.change !== "0").length ?? 0;
  expect(changed).toBeGreaterThan(2);
  expect(bars(section())).toBe(changed + 2);
});

test("the table has every part with its exact amounts, and the total", () => {
  const breakdown = metric?.breakdowns[0];
  if (!breakdown) throw new Error("the data have no breakdown");
  const exact = { before: "0", after: "0.12345678901234567890", change: "0.12345678901234567890" };
  const parts = breakdown.parts.map((part, i) => (i === 0 ? { ...part, ...exact } : part));
  const body = section({ breakdowns: [{ ...breakdown, parts }] });
  const table = body.slice(body.indexOf("<table>"));
  expect(table).toContain('<td class="n">0.1234567890123456789</td>');
  expect([...table.matchAll(/<th scope="row">/g)]).toHaveLength(parts.length + 1);
  expect(table).toMatch(/<b>total<\/b><\/th><td class="n">1,000<\/td><td class="n">1,147\.25/);
});

test("of too many projects it says that the change is left out, and of how many", () => {
  const body = String(
    changeSection({ ...data, change: { ...change, metrics: [] }, changeProjectsLeftOut: 5_000 })?.body,
  );
  expect(body).toContain("Left out here, because comparing the usage of 5,000 projects takes seconds");
  expect(changeSection({ ...data, change: { ...change, metrics: [] } })).toBeUndefined();
});

test("an axis that does not begin at 0 says so", () => {
  const large = { before: "100000", after: "100152", change: "152" };
  expect(section({ ...large, compared: large })).toContain("The axis begins at 99.8K, not at 0.");
  const small = { before: "0", after: "152", change: "152" };
  expect(section({ ...small, compared: small })).not.toContain("not at 0");
});

test("without usage there is no section; without a grouping, or days to compare, there is no chart", () => {
  expect(changeSection({ ...data, change: { ...change, metrics: [] } })).toBeUndefined();
  expect(section({ breakdowns: [] })).toMatch(/^<p>Hours rose/);
  expect(section({ breakdowns: [] })).not.toContain("<svg");
  const breakdowns = (metric?.breakdowns ?? []).map((one) => ({ ...one, daysCompared: 0 }));
  expect(section({ breakdowns })).not.toContain("<svg");
});

test("a set of models is named by its members in the chart", () => {
  const breakdown = metric?.breakdowns[0];
  if (!breakdown) throw new Error("the data have no breakdown");
  const parts = breakdown.parts.map((part, i) => (i === 0 ? { ...part, group: '["nova-3","aura-2"]' } : part));
  expect(section({ breakdowns: [{ ...breakdown, parts }] })).toContain(">nova-3, aura-2</text>");
});

test("a key is named by its comment in the words, the chart and the table, and its id appears when it is pointed at", () => {
  const breakdown = metric?.breakdowns[0];
  if (!breakdown) throw new Error("the data have no breakdown");
  const parts = breakdown.parts.map((part, i) =>
    i === 0 ? { ...part, group: "8f3c-id", comment: "<nightly>" } : part,
  );
  const body = section({ breakdowns: [{ ...breakdown, grouping: "accessor", parts }] });
  const named = '<bdi title="8f3c-id">&lt;nightly&gt;</bdi>';
  expect(body).toContain(`<li>By key, ${named} accounts for`);
  expect(body).toContain(`<th scope="row">${named}</th>`);
  expect(body).toContain(">&lt;nightly&gt;</text>");
  expect(body.replaceAll(named, "")).not.toContain("8f3c-id");
});

test("two keys with the same comment are told apart by their ids, in the words, the chart and the table", () => {
  const breakdown = metric?.breakdowns[0];
  if (!breakdown) throw new Error("the data have no breakdown");
  const parts = breakdown.parts.map((part, i) =>
    i < 2 ? { ...part, group: `id-${i}`, comment: "nightly", status: "changed" as const } : part,
  );
  const body = section({ breakdowns: [{ ...breakdown, grouping: "accessor", parts }] });
  for (const id of ["id-0", "id-1"]) {
    expect(body).toContain(`<bdi title="${id}">nightly (${id})</bdi>`);
    expect(body).toContain(`>nightly (${id})</text>`);
    expect(body).toContain(`<th scope="row"><bdi title="${id}">nightly (${id})</bdi></th>`);
  }
});
