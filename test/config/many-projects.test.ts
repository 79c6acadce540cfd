// Configurations of thousands of projects or filters: the time to check them grows in proportion, and no message lists them all.

import { expect, test } from "vitest";
import type { ExportJob } from "../../src/usage/export-plan.ts";
import { messageFor, parseText } from "./sample-config.ts";

function configOf(count: number, nameInExport = (name: string) => name): string {
  const names = Array.from({ length: count }, (_, i) => `customer-${String(i).padStart(4, "0")}`);
  const job = {
    ...{ name: "nightly", schedule: "15 2 * * *", timezone: "UTC", window: { days: 7 } },
    ...{ groupings: ["none", "accessor", "model"], filters: [{ name: "all" }, { each: "accessor" }] },
  };
  const config = {
    service: { baseUrl: "https://speech.example.com" },
    projects: names.map((name, i) => ({ id: `p${i}`, name, key: { env: "KEY" } })),
    exports: [{ ...job, projects: names.map(nameInExport) }],
    budgets: [{ name: "all", metric: "hours", amount: 1000 }],
  };
  return JSON.stringify(config, null, 1);
}

/** The CPU time of checking each text. It is the least of five rounds, because other work on the machine only adds to it. */
function cpuTimes(texts: readonly string[]): readonly number[] {
  const rounds = Array.from({ length: 5 }, () =>
    texts.map((text) => {
      const before = process.cpuUsage();
      parseText(text);
      const { user, system } = process.cpuUsage(before);
      return user + system;
    }),
  );
  return texts.map((_, i) => Math.min(...rounds.map((times) => times[i] ?? Number.NaN)));
}

function withFilters(count: number): string {
  const filters = Array.from({ length: count }, (_, i) => ({ name: `tag ${i}`, dimensions: { tags: `t${i}` } }));
  const config = JSON.parse(configOf(1));
  const [job] = config.exports;
  return JSON.stringify({ ...config, exports: [{ ...job, filters: [...job.filters, ...filters] }] });
}

test.each<[string, (count: number) => string, (job?: ExportJob) => readonly unknown[] | undefined, number]>([
  ["projects", configOf, (job) => job?.projects, 8_000],
  // One of the filters is "all".
  ["filters", withFilters, (job) => job?.filters, 8_001],
])("eight times as many %s do not take sixty-four times as long to check", (_, textOf, partsOf, partCount) => {
  const [few, many] = [textOf(1_000), textOf(8_000)];
  expect(partsOf(parseText(many).exports[0])).toHaveLength(partCount);
  const [fewTime = Number.NaN, manyTime = Number.NaN] = cpuTimes([few, many]);
  // Linear growth would be 8, and quadratic growth 64.
  expect(manyTime / fewTime).toBeLessThan(30);
});

test("a message lists only the first of thousands of known names or hundreds of mistakes", () => {
  const misspelt = messageFor(configOf(2_000, (name) => (name === "customer-0042" ? "custmer-0042" : name)));
  expect(misspelt).toContain('did you mean "customer-0042"?');
  expect(misspelt).toContain("and 1970 more");
  expect(misspelt.length).toBeLessThan(1_500);

  const lines = messageFor(configOf(300, (name) => `x${name}`)).split("\n");
  expect(lines[0]).toMatch(/has \d+ errors:$/);
  // The message shows a hundred mistakes.
  expect(lines.length).toBeLessThan(110);
  expect(lines.at(-1)).toMatch(/^- and \d+ more$/);
});
