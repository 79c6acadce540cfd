// Questions about cost. The answer, its CSV and its SQL, which usage_reader runs, must have the same amounts.

import fc from "fast-check";
import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { queryAtOneMoment } from "../../src/db/connection/transaction.ts";
import { storeLineItems } from "../../src/db/project-facts.ts";
import { readAnswer } from "../../src/facts/amounts.ts";
import type { Answer } from "../../src/facts/answer.ts";
import { overview } from "../../src/facts/overview.ts";
import { answerCsv } from "../../src/show/csv.ts";
import { DIARIZED, forgetAll, storeSeries, type Usage } from "../db/reported-usage.ts";
import { storeBills, storeHourPrices, sumOf } from "../db/stored-charges.ts";
import { daysBack, newProject } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";
import { asReader, parseQuestion, usageSite } from "../web/usage-site.ts";

const { db, read } = await testDatabase();
const back = await daysBack(db);
const PERIOD = `from=${back(3)}&to=${back(1)}`;

beforeEach(() => forgetAll(db));

const storePrices = storeHourPrices.bind(undefined, db);

/** The same rows on each of the three days. */
const onEachDay = (...rows: Usage[string][number][]): Usage =>
  Object.fromEntries([1, 2, 3].map((day) => [back(day), rows]));

async function ask(query: string): Promise<Answer> {
  const question = parseQuestion(new URLSearchParams(`${PERIOD}&${query}`), back(0));
  return queryAtOneMoment(db, (run) => readAnswer(run, question));
}

async function pageAt(query: string, path = "/usage"): Promise<string> {
  return String((await usageSite(db)[path]?.(new URLSearchParams(`${PERIOD}&${query}`)))?.body);
}

/** Expects for each group its amount in the period and its amount in the period before, and the same amounts from SQL and CSV. */
async function expectAmounts(
  answer: Answer,
  expected: Readonly<Record<string, readonly [string | null, string | null]>>,
) {
  const shown = answer.groups.map(({ group, amount, before }) => [group, [amount, before]] as const);
  expect(Object.fromEntries(shown)).toEqual(expected);
  const rows = await asReader(db, answer.sql);
  const inPeriod = rows.filter(({ usage_date: day }) => String(day) >= answer.question.from);
  for (const { group, amount } of answer.groups) {
    const ofGroup = inPeriod.filter((row) => row.group === group);
    expect(sumOf(ofGroup.map((row) => row.amount ?? "0"))).toBe(amount ?? "0");
  }
  const lines = answerCsv(answer, "groups").trimEnd().split("\r\n").slice(1);
  for (const line of lines) expect(line).toMatch(new RegExp(`,"${answer.question.currency}"$`));
  for (const [i, { amount }] of answer.groups.entries()) expect(lines[i]?.split(",")[2]).toBe(amount ?? "");
}

test("an estimated cost names the days and prices that it lacks", async () => {
  const usage = { [back(1)]: [["nova", { hours: "4" }] as const, ["new-model", { hours: "4" }] as const] };
  const project = newProject();
  await storeSeries(db, [{ project, grouping: "model", usage, due: { start: back(2), end: back(1) } }]);
  const unpriced = await ask("metric=estimated_cost");
  expect([unpriced.groups, unpriced.question.currency]).toEqual([[], null]);
  expect(await pageAt("metric=estimated_cost")).toContain("No prices are configured");

  await storePrices(["nova", "EUR", "0.5"]);
  const answer = await ask("metric=estimated_cost&compare=none");
  expect(answer.groups.map(({ group, amount }) => [group, amount])).toEqual([["nova", "2"]]);
  expect(answer).toMatchObject({ complete: false, lacking: { unpricedModels: 1, incompleteDays: [back(2)] } });
  expect(await pageAt("metric=estimated_cost&grouping=endpoint")).toContain(
    "Estimated cost by endpoint is not exported. Choose another split above.",
  );
  expect(await pageAt(`metric=estimated_cost&currency=EURO`)).toContain("currency: no price is in");
  const filtered = () => ask(`metric=estimated_cost&filter=${DIARIZED.name}`);
  expect(await filtered().catch(String)).toContain("InvalidQuestion");
  const part = { project, grouping: "model", usage } as const;
  await storeSeries(db, [part, { ...part, filter: DIARIZED }]);
  expect(await filtered()).toMatchObject({ total: null, groups: [] });
});

test("only unpriced models that the answer covers are counted", async () => {
  const project = newProject();
  const due = { start: back(3), end: back(1) };
  const totals = onEachDay([null, { hours: "4" }]);
  await storeSeries(db, [
    { project, grouping: "model", usage: { [back(1)]: [["nova", { hours: "4" }] as const] }, due },
    { project, grouping: "none", usage: totals, due },
  ]);
  await storePrices(["nova", "EUR", "0.5"]);
  const query = "metric=estimated_cost&compare=none";
  const lackingDays = await ask(query);
  expect(lackingDays).toMatchObject({
    complete: false,
    lacking: { unpricedModels: 0, incompleteDays: [back(3), back(2)] },
  });

  await forgetAll(db);
  await storePrices(["nova", "EUR", "0.5"]);
  const usage = onEachDay(["nova", { hours: "4" }], ["new", { hours: "4" }]);
  await storeSeries(db, [{ project: newProject(), grouping: "model", usage, due }]);
  expect(await ask(`${query}&group=nova`)).toMatchObject({ complete: true, lacking: { unpricedModels: 0 } });
  expect(await ask(`${query}&group=new`)).toMatchObject({ complete: false, lacking: { unpricedModels: 1 } });
  expect(await ask(query)).toMatchObject({ complete: false, lacking: { unpricedModels: 1 } });
});

test("the metrics without a price are those that bi.cost_estimated lists as unpriced, however little is used", async () => {
  const nova = ["nova", { hours: "4", total_hours: "5", requests: "9", tokens_in: "5" }] as const;
  const usage = { ...onEachDay(nova), [back(2)]: [nova, ["idle", { hours: "0", requests: "1" }]] } as const;
  const due = { start: back(3), end: back(1) };
  await storeSeries(db, [{ project: newProject(), grouping: "model", usage, due }]);
  await storePrices(["nova", "EUR", "0.5"], ["idle", "EUR", "0.5"]);
  const { lacking } = await ask("metric=estimated_cost&compare=none");
  expect(lacking).toMatchObject({ unpricedModels: 2, unpricedMetrics: ["requests", "tokens_in"] });
  const unpriced = sql`select distinct model, metric from bi.cost_estimated where status = 'unpriced' order by model`;
  expect((await unpriced.execute(db)).rows).toEqual([
    { model: "idle", metric: "requests" },
    { model: "nova", metric: "tokens_in" },
  ]);
});

test("an answer in one currency names the other currencies that have prices", async () => {
  const usage = onEachDay(["nova", { hours: "4" }], ["new", { hours: "4" }]);
  const due = { start: back(3), end: back(1) };
  await storeSeries(db, [{ project: newProject(), grouping: "model", usage, due }]);
  const query = "metric=estimated_cost&compare=none";
  expect(await ask(query)).toMatchObject({ complete: false, total: { amount: null } });

  await storePrices(["nova", "EUR", "0.5"], ["new", "USD", "1"]);
  const inEuro = await ask(query);
  await expectAmounts(inEuro, { nova: ["6", null] }); // 3 days of 4 hours at 0.5
  expect(inEuro).toMatchObject({ complete: true, total: { amount: "6" }, lacking: { otherCurrencies: ["USD"] } });
  expect(inEuro.available.currencies).toEqual(["EUR", "USD"]);
  expect((await ask(`${query}&currency=USD`)).lacking.otherCurrencies).toEqual(["EUR"]);
});

test("the billed cost is what the service charges, credits included, by each grouping that is exported", async () => {
  const charges = [
    { day: back(1), accessor: "key-1", dollars: "10.25" },
    { day: back(2), accessor: "key-1", dollars: "0.0001" },
    { day: back(2), accessor: "key-2", dollars: "-3" },
    { day: back(9), accessor: "key-2", dollars: "7" },
  ];
  const [project, days] = [newProject(), { start: back(10), end: back(1) }];
  await storeBills(db, project, ["none", "accessor"], days, charges);
  const answer = await ask("metric=billed_cost&grouping=accessor");
  await expectAmounts(answer, { "key-1": ["10.2501", "0"], "key-2": ["-3", "7"] });
  expect(answer.total).toMatchObject({ amount: "7.2501", before: "7" });
  expect((await ask("metric=billed_cost&grouping=none")).total?.amount).toBe("7.2501");
  expect((await ask("metric=billed_cost")).total?.amount).toBe("7.2501");
  const page = await pageAt("metric=billed_cost&grouping=model");
  expect(page).toContain("Billed cost by model is not exported. Choose another split above.");
  await storeBills(db, project, ["none"], days, charges.slice(0, 1), { filter: DIARIZED });
  expect((await ask(`metric=billed_cost&grouping=none&filter=${DIARIZED.name}`)).total?.amount).toBe("10.25");
});

test("each total on the overview equals the answer to its question, even with credits and empty days", async () => {
  const aDay = fc.record({ back: fc.integer({ min: 1, max: 10 }), amount: fc.constantFrom("0", "3", "-3", "0.0001") });
  const someDays = fc.uniqueArray(aDay, { selector: (day) => day.back, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(someDays, fc.boolean(), async (days, isBilled) => {
      await forgetAll(db);
      const [project, due] = [newProject(), { start: back(10), end: back(1) }];
      const rowsOf = ({ amount }: (typeof days)[number]) =>
        ["nova", "aura"].map((model) => [model, { hours: amount.replace("-", "") }] as const);
      const usage = Object.fromEntries(days.map((day) => [back(day.back), rowsOf(day)] as const));
      const series = { project, usage, due, windowDays: 1 };
      await storePrices(["nova", "EUR", "0.5"], ["aura", "USD", "3"]);
      const groupings = ["none", "model"] as const;
      await storeSeries(
        db,
        groupings.map((grouping) => ({ ...series, grouping })),
      );
      const charges = days.map((day) => ({ day: back(day.back), dollars: day.amount }));
      if (isBilled) await storeBills(db, project, ["none"], due, charges);
      const asked = { period: { start: back(3), end: back(1) }, before: { start: back(10), end: back(8) } };
      await queryAtOneMoment(db, async (run) => {
        const { total, cost, monthSoFar } = await overview(run, asked, back(0));
        expect(cost?.question.metric).toBe(isBilled ? "billed_cost" : "estimated_cost");
        const answers = [total, cost, ...(monthSoFar ? [monthSoFar.answer] : [])].filter((one) => one !== undefined);
        for (const answer of answers) {
          const { from, to, before, metric, limit, sort } = answer.question;
          const period = { start: from, end: to };
          const question = { period, before: before ? { start: before.from, end: before.to } : undefined, limit, sort };
          expect(answer).toEqual(await readAnswer(run, { ...question, metric, grouping: "none" }));
        }
      });
    }),
    { numRuns: 15, examples: [true, false].map((isBilled) => [[{ back: 1, amount: "0" }], isBilled]) },
  );
});

test("a line item is shown with the newest name that the service gave it", async () => {
  const charges = [
    { day: back(2), line_item: "streaming::nova-3", dollars: "7" },
    { day: back(2), line_item: "voice-agent", dollars: "3" },
  ];
  await storeBills(db, newProject(), ["none", "line_item"], { start: back(10), end: back(1) }, charges);
  await storeLineItems(db, [["streaming::nova-3", "Nova"]]);
  await storeLineItems(db, [["streaming::nova-3", "Nova - 3 (Stream)"]]);
  const answer = await ask("metric=billed_cost&grouping=line_item");
  expect(answer.groups.map(({ group, label }) => [group, label])).toEqual([
    ["streaming::nova-3", "Nova - 3 (Stream)"],
    ["voice-agent", null],
  ]);
});

test("a billed day of which a charge lacks its amount is incomplete", async () => {
  const charges = [1, 2, 3, 8, 9, 10].flatMap((day) => [
    { day: back(day), accessor: "key-1", dollars: "10" },
    { day: back(day), accessor: "key-2", dollars: "90" },
  ]);
  await storeBills(db, newProject(), ["accessor"], { start: back(10), end: back(1) }, charges);
  await read(sql`update usage_export.slice_row set dollars = null where dollars = 90 and usage_date = ${back(2)}`);
  const query = "metric=billed_cost&grouping=accessor";
  const answer = await ask(query);
  expect(answer).toMatchObject({ complete: false, lacking: { incompleteDays: [back(2)], incompleteDaysBefore: [] } });
  expect(answer.groups.map(({ group, byDay }) => [group, byDay])).toEqual([
    ["key-2", ["90", null, "90"]],
    ["key-1", ["10", "10", "10"]],
  ]);
  const warned = /class="notice bad">.*are too low: .*health[^>]*">Data health<\/a> says why/s;
  expect(await pageAt(query)).toMatch(warned);
  const csv = await pageAt(`${query}&rows=days`, "/api/v1/usage.csv");
  expect(csv).toContain(`${back(2)},"incomplete","group","key-2",,"false"`);
  expect(await ask(`${query}&group=key-1`)).toMatchObject({ complete: true, total: { amount: "30" } });
  const later = new URLSearchParams(`from=${back(1)}&to=${back(1)}&${query}`);
  const next = await queryAtOneMoment(db, (run) => readAnswer(run, parseQuestion(later, back(0))));
  expect(next).toMatchObject({ complete: true, lacking: { incompleteDays: [], incompleteDaysBefore: [] } });
  await read(sql`update usage_export.slice set closed_at = null where usage_date = ${back(1)}`);
  expect((await ask(query)).lacking.incompleteDays).toEqual([back(2), back(1)]);
});
