// The section on what usage cost: its words, its waterfall and its table.

import { expect, test } from "vitest";
import type { CostChange } from "../../src/report/cost-change.ts";
import { costSection } from "../../src/report/cost-section.ts";
import { makeCost, makeCostPart, makeReportData } from "./make-report-data.ts";

function section(part: Partial<CostChange> = {}): string {
  return String(costSection(makeReportData({ costs: [makeCost(part)] }))?.body);
}

test("the first sentence splits the change in usage and prices, the next names the models", () => {
  const body = section();
  expect(body).toMatch(
    /^<p>Estimated cost in USD rose by 30% on the days that both have, from 100 \(.*\) to 130 \(.*\): more usage \(\+18\) and higher prices \(\+12\)\.<\/p>/,
  );
  expect(body).toContain(
    "<li>By model, <bdi>nova-3</bdi> accounts for +25 of +30 (usage +13, prices +12), <bdi>aura-2</bdi> +5.</li>",
  );
  expect(body).toContain("<li>New by model: <bdi>aura-2</bdi> (+5).</li>");
  expect(body).toContain("<li>Left out are days that only one of the two has: 0 before, 1.5 after.</li>");
});

test.each<[string, string, string]>([
  ["30", "0", "more usage (+30)."],
  ["-30", "0", "less usage (-30)."],
  ["0", "30", "higher prices (+30)."],
  ["0", "-30", "lower prices (-30)."],
  ["-10", "40", "less usage (-10) and higher prices (+40)."],
])("by usage %s and by prices %s it says: %s", (volume, price, says) => {
  const change = String(Number(volume) + Number(price));
  const compared = { before: "100", after: String(100 + Number(change)), change, volume, price };
  expect(section({ compared })).toContain(`: ${says}</p>`);
});

test("what is not in the amounts is said: usage without a price, days that were not read or may still change", () => {
  const body = section({ unpricedModels: 2, daysLacking: 1, isFinal: false });
  expect(body).toContain("Usage of 2 models has no price and is not in these amounts.");
  expect(body).toContain("1 day was not read by model.");
  expect(body).toContain("Not all of these days are final");
  expect(section({ daysCompared: 0 })).toContain("be compared: no day was read by model both in");
  expect(section({ daysCompared: 0 })).not.toContain("<svg");
});

test("what the service charges is said first, and which projects are estimated beside it", () => {
  const parts = [
    ["streaming::nova-3", "10", "12.5", "2.5", "changed"],
    ["sync::aura-2", "0", "0.25", "0.25", "new"],
  ].map(([group = "", before = "", after = "", change = "", status]) => ({
    ...{ part: "group" as const, group, project: null, status: status as "new" | "changed" },
    ...{ groups: 1, before, after, change, firstDay: null, lastDay: null },
  }));
  const amounts = { before: "10", after: "12.75", change: "2.75" };
  const days = { daysCompared: 30, daysInAll: 30 };
  const breakdown = { grouping: "line_item" as const, ...days, newGroups: 1, vanishedGroups: 0, parts };
  const data = makeReportData({ costs: [makeCost({ projects: ["a", "b", "c", "d", "e", "f"] })] });
  const metric = { metric: "cost", ...amounts, compared: amounts, notCompared: null, ...days, breakdowns: [breakdown] };
  const body = String(costSection({ ...data, billed: { ...data.billed, metrics: [metric] } })?.body);
  expect(body).toMatch(/^<p>Billed cost in USD rose by 27.5%, from 10 \(.*\) to 12.8 /);
  expect(body).toContain("By line item, <bdi>streaming::nova-3</bdi> accounts for +2.5 of +2.75");
  expect(body).toContain("<li>New by line item: <bdi>sync::aura-2</bdi> (+0.25).</li>");
  expect(body).toContain("Change of billed cost in USD by line item");
  expect(body).toContain("<bdi>e</bdi> and 1 more.");
  expect(section()).not.toContain("estimate of projects");
});

test("the waterfall has a bar for each effect, and the table the exact amounts", () => {
  const exact = "0.12345678901234567891";
  const parts = [
    makeCostPart({
      group: "nova-3",
      before: "1",
      after: "4",
      change: "3",
      volume: exact,
      price: "2.87654321098765432109",
    }),
    makeCostPart({ group: "aura-2", before: "2", after: "1", change: "-1", volume: "-1" }),
  ];
  const body = section({ before: "3", after: "5", change: "2", parts });
  const [, wide = ""] = /<svg class="wide"[\s\S]*?>([\s\S]*?)<\/svg>/.exec(body) ?? [];
  expect([...wide.matchAll(/<path[^>]*fill="var\(--(rest|series-\d)\)"/g)]).toHaveLength(5);
  expect(wide).toContain("price of nova-3");
  const table = body.slice(body.indexOf("<table>"));
  expect(table).toContain(`<td class="n">${exact}</td><td class="n">2.87654321098765432109</td>`);
});

test("without prices there is no section", () => {
  expect(costSection(makeReportData())).toBeUndefined();
});

test("where the calculation would take long, the section says so in place of the amounts", () => {
  const body = String(costSection(makeReportData({ costs: [], costRowsLeftOut: 120_000 }))?.body);
  expect(body).toContain("120,000 rows of usage by model");
  expect(body).toContain("<code>usage-export report</code>");
});
