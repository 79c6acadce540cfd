// Which dialect a service speaks, and whether a filter narrows the totals.

import { sql } from "kysely";
import { expect, test } from "vitest";
import type { Database } from "../../src/db/connection/database.ts";
import { storedDialect } from "../../src/db/project-facts.ts";
import { Dialects } from "../../src/jobs/dialects.ts";
import { compareTotals, dayTotals, type Effect } from "../../src/jobs/filter-check.ts";
import type { Dialect } from "../../src/usage/dimensions.ts";
import { normalise } from "../../src/usage/normalise.ts";
import { type BilledRow, billed } from "../db/stored-billing.ts";
import { KEY_RING, serve } from "../service/open-test-service.ts";
import { testDatabase } from "../support/database.ts";
import { answerJson, type Script } from "../support/scripted-server.ts";
import { silentApp } from "../support/silent-app.ts";
import { RUN_DAY, sampleAnswer, sampleRequest, sampleRow, windowless } from "../usage/sample-request.ts";

const { db: database } = await testDatabase();

const NAMES = { interface: "model", "2026": "models" } as const;
const BY_MODEL = sampleRequest("model");

/** Opens `Dialects` on a service that groups by model in the dialect that `spoken` returns, and answers any other request with `status`. */
async function open(dialect: Dialect | "auto", spoken: () => Dialect | undefined, db?: Database, status = 200) {
  const script: Script = ({ target }, response) => {
    const grouping = new URL(target, "http://service").searchParams.get("grouping");
    const speaks = spoken();
    const isKnown = speaks && grouping === NAMES[speaks];
    const rows = isKnown ? [sampleRow("2026-03-17", { [NAMES[speaks]]: "nova" })] : [];
    answerJson(response, isKnown ? 200 : status, sampleAnswer(rows));
  };
  const { server, service } = await serve(script, { dialect });
  const app = silentApp();
  return { server, dialects: new Dialects({ app, db, service, keyRing: KEY_RING }) };
}

test("the probe requests recent days first", async () => {
  const windowed = await open("auto", () => "2026");
  await windowed.dialects.forRequest(BY_MODEL);
  expect(windowed.server.requests[0]?.target).not.toContain("2026-03-17");
  const undated = await open("auto", () => "2026");
  await undated.dialects.forRequest(windowless("model"));
  expect(undated.server.requests[0]?.target).not.toContain("start=");
});

test.each([400, 422])("a refusal of the names of one dialect with %d proves the other dialect", async (status) => {
  const { dialects } = await open("auto", () => "interface", undefined, status);
  expect(await dialects.forRequest(BY_MODEL)).toBe("interface");
});

test("no probe is made for a configured dialect or for a request that is the same in both dialects", async () => {
  const configured = await open("interface", () => "2026");
  expect(await configured.dialects.forRequest(BY_MODEL)).toBe("interface");
  const opened = await open("auto", () => "interface");
  await opened.dialects.forRequest(sampleRequest("endpoint"));
  expect([configured, opened].map(({ server }) => server.requests.length)).toEqual([0, 0]);
});

test("a dialect that the service begins to speak is stored for other processes", async () => {
  let spoken: Dialect = "interface";
  const { server, dialects } = await open("auto", () => spoken, database);
  await dialects.forRequest(BY_MODEL);
  spoken = "2026";
  expect(await dialects.alternative(BY_MODEL, "interface")).toBe("2026");
  expect(await storedDialect(database, server.origin)).toBe("2026");
});

test("a request that still reads the database uses a dialect that is found meanwhile", async () => {
  let spoken: Dialect | undefined = "interface";
  const opened = await open("auto", () => spoken, database);
  const { reading, probing } = await database.transaction().execute(async (tx) => {
    await sql`lock table usage_export.service_dialect`.execute(tx);
    const countBlocked = sql<{ blocked: number }>`
      select count(*)::integer as blocked from pg_locks where relation = 'usage_export.service_dialect'::regclass and not granted
    `;
    const blocked = async () => (await countBlocked.execute(tx)).rows[0]?.blocked;
    const reading = opened.dialects.forRequest(BY_MODEL);
    await expect.poll(blocked).toBe(1);
    const probing = opened.dialects.alternative(BY_MODEL, "2026");
    await expect.poll(blocked).toBe(2);
    // From now on no probe finds a dialect.
    spoken = undefined;
    return { reading, probing };
  });
  expect(await reading).toBe("interface");
  expect(await probing).toBe("interface");
});

const [FIRST, SECOND] = ["2026-03-16", "2026-03-17"];

/** The totals of two days; each number is the requests of one group. */
function totals(first: readonly number[], second: readonly number[]) {
  const rows = (day: string, requests: readonly number[]) =>
    requests.map((count, i) => sampleRow(day, { accessor: `a${i}` }, { requests: count, hours: count / 10 }));
  const answer = sampleAnswer([...rows(FIRST, first), ...rows(SECOND, second)]);
  return dayTotals(normalise(sampleRequest("accessor"), answer, RUN_DAY).slices);
}

type Counts = readonly number[];
test.each<[string, Effect, total1: Counts, total2: Counts, filtered1: Counts, filtered2: Counts]>([
  ["less on one day is narrower", "narrower", [7], [5], [3], [5]],
  ["nothing on one day, and something on another, is narrower", "narrower", [7], [5], [7], []],
  ["the same numbers are the same", "same", [7], [5], [7], [5]],
  ["the same numbers in other groups are the same", "same", [7], [6], [1, 2, 4], [3, 3]],
  ["more than the total, which was read earlier, is the same", "same", [7], [5], [7], [6]],
  ["nothing on days with usage is empty", "empty", [7], [5], [], []],
  ["rows of zeros are empty", "empty", [7], [5], [0], [0]],
  ["without usage nothing is proven", "no usage", [], [], [], []],
  ["a day without usage proves nothing about another day", "same", [], [5], [], [5]],
])("%s", (_, effect, total1, total2, filtered1, filtered2) => {
  expect(compareTotals(totals(total1, total2), totals(filtered1, filtered2))).toBe(effect);
});

/** The totals of amounts of money on one day, one for each line item. */
function billedTotals(dollars: readonly string[]) {
  const charges = dollars.map((amount, i): BilledRow => [amount, { line_item: `item ${i}` }]);
  return dayTotals([billed(FIRST, "line_item", charges)]);
}

test.each<[string, Effect, total: readonly string[], filtered: readonly string[]]>([
  ["a credit is narrower than all charges", "narrower", ["7"], ["-3"]],
  ["a credit that is larger than the charges is narrower", "narrower", ["7"], ["-30"]],
  ["a part of the credits is narrower", "narrower", ["-7"], ["-3"]],
  ["charges are narrower where credits are larger", "narrower", ["-7"], ["3"]],
  ["the same credits are the same", "same", ["-7"], ["-4", "-3"]],
  ["charges and credits that cancel each other are not empty", "narrower", ["7"], ["3", "-3"]],
  ["amounts of zero are empty", "empty", ["-7"], ["0"]],
])("%s", (_, effect, total, filtered) => {
  expect(compareTotals(billedTotals(total), billedTotals(filtered))).toBe(effect);
});
