// Compares the rows of the change functions, for random pairs of periods, with rows that are computed here from the stored numbers. The
// computed rows of a pair add up to the change of the total. The numbers include rotated keys, overlapping tags, days that failed or were
// never read, charges without an amount, and long decimals.

import { type RawBuilder, sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { randomFrom } from "../../../src/emulator/usage.ts";
import type { Grouping } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { exact } from "../../usage/expected-costs.ts";
import { usedKeys } from "../keys/written-ledger.ts";
import { forgetAll, storeSeries } from "../reported-usage.ts";
import { billed } from "../stored-billing.ts";
import { storePriceBook } from "../stored-costs.ts";
import { configured, daysBack, failOn, type Numbers, newProject, register, store, UNGUARDED } from "../stored-usage.ts";

const { db, read } = await testDatabase();
const back = await daysBack(db);

beforeEach(() => forgetAll(db));

const PAIRS = 250;
const DAYS = 40;
const seed = Math.floor(Math.random() * 2 ** 31);
const uniform = randomFrom(seed);
const random = (below: number) => Math.floor(uniform() * below);

/** `after` and `before` are the first days of the periods, in days back. Some periods overlap, some reach beyond what is stored. */
const pairs = Array.from({ length: PAIRS }, (_, pair) => {
  const afterLength = 1 + random(12);
  const beforeLength = random(2) === 0 ? afterLength : 1 + random(12);
  return { pair, after: random(DAYS + 3), afterLength, before: random(DAYS + 3), beforeLength };
});
type Pair = (typeof pairs)[number];

const daysIn = (first: number, length: number) => Array.from({ length }, (_, i) => first - i);
const beforeOf = ({ before, beforeLength }: Pair) => daysIn(before, beforeLength);
const afterOf = ({ after, afterLength }: Pair) => daysIn(after, afterLength);

function decimal(): string {
  const whole = BigInt(`${random(10)}${random(1_000_000_000)}`).toString();
  return whole + (random(2) === 0 ? "" : `.${random(1_000_000_000)}${random(1_000_000_000)}1`);
}

/** By days back, what each group has. A day that was not read has no entry. */
type Days<T> = ReadonlyMap<number, readonly (readonly [group: string, T])[]>;
type Amounts = Days<bigint>;
const NO_DAYS: Days<never> = new Map();

function randomDays<T>(groups: readonly string[], make: () => T): Days<T> {
  const days = daysIn(DAYS, DAYS).filter(() => random(8) > 0);
  return new Map(days.map((day) => [day, groups.filter(() => random(4) > 0).map((group) => [group, make()])]));
}

function amountsOf<T>(
  days: Days<T>,
  amountOf: (made: T, day: number) => bigint,
  nameOf = (group: string): string => group,
) {
  const amounts = [...days].map(
    ([day, rows]) => [day, rows.map(([group, made]) => [nameOf(group), amountOf(made, day)] as const)] as const,
  );
  return new Map(amounts);
}

/** How many days of both periods were read. */
const daysRead = (days: Days<unknown> | undefined, pair: Pair) =>
  [...beforeOf(pair), ...afterOf(pair)].filter((day) => days?.has(day)).length;

/** The first item with the most days; undefined if none has any. */
function withMostDays<T>(all: readonly T[], daysOf: (one: T) => number): T | undefined {
  const most = Math.max(...all.map(daysOf));
  return most > 0 ? all.find((one) => daysOf(one) === most) : undefined;
}

/** By part, the amounts before and after; parts whose amounts are both 0 are left out. */
type Parts = Readonly<Record<string, readonly bigint[]>>;

/** The nth day of one period is compared with the nth day of the other. */
function expectedParts(totals: Amounts, groups: Amounts, pair: Pair): Parts {
  const parts = new Map<string, [bigint, bigint]>();
  const add = (part: string, side: number, amount: bigint) => {
    const [before, after] = parts.get(part) ?? [0n, 0n];
    parts.set(part, side === 0 ? [before + amount, after] : [before, after + amount]);
  };
  const periods = [beforeOf(pair), afterOf(pair)];
  for (const [side, days] of daysRead(groups, pair) > 0 ? periods.entries() : []) {
    for (const [i, day] of days.entries()) {
      const total = (totals.get(day) ?? []).reduce((sum, [, amount]) => sum + amount, 0n);
      const bothDays = periods.map((period) => period[i] ?? Number.NaN);
      const isCompared = bothDays.every((one) => totals.has(one) && groups.has(one));
      add(isCompared ? "not attributed" : "days not compared", side, total);
      for (const [group, amount] of isCompared ? (groups.get(day) ?? []) : []) {
        add(`group ${group}`.trim(), side, amount);
        add("not attributed", side, -amount);
      }
    }
  }
  return Object.fromEntries([...parts].filter(([, sums]) => sums.some((sum) => sum !== 0n)));
}

/** Compares the function's rows for each pair with the expected parts of each subject, such as a currency. */
async function expectEach(
  functionName: string,
  subject: RawBuilder<unknown>,
  group: RawBuilder<unknown>,
  expectedOf: (pair: Pair) => Readonly<Record<string, Parts>>,
): Promise<void> {
  const rows = await read(sql<{ pair: number; subject: string; part: string; amounts: readonly string[] }>`
    select p.pair, ${subject} as subject, concat_ws(' ', c.part, ${group}) as part,
      array[coalesce(c.amount_before, 0), coalesce(c.amount_after, 0), c.change]::text[] as amounts
    from json_to_recordset(${JSON.stringify(pairs)}::json)
      as p (pair integer, after integer, "afterLength" integer, before integer, "beforeLength" integer)
    cross join lateral ${sql.id("bi", functionName)}(
      ${back(0)}::date - p.after, ${back(0)}::date - p.after + p."afterLength" - 1,
      ${back(0)}::date - p.before, ${back(0)}::date - p.before + p."beforeLength" - 1
    ) c
    where ${subject} is not null
  `);
  expect(rows.length).toBeGreaterThan(PAIRS);
  const answers = Map.groupBy(rows, ({ pair }) => pair);
  for (const pair of pairs) {
    const shown = (answers.get(pair.pair) ?? []).flatMap(({ subject, part, amounts }) => {
      const [before = 0n, after = 0n, change] = amounts.map(exact);
      expect([pair, subject, part, change]).toEqual([pair, subject, part, after - before]);
      return before === 0n && after === 0n ? [] : `${subject}: ${part} ${before} ${after}`;
    });
    const expected = Object.entries(expectedOf(pair)).flatMap(([subject, parts]) =>
      Object.entries(parts).map(([part, [before, after]]) => `${subject}: ${part} ${before} ${after}`),
    );
    expect([pair, shown.sort()]).toEqual([pair, expected.sort()]);
  }
}

test(`each row of bi.usage_change is the calculated one (seed ${seed})`, async () => {
  const METRICS = ["hours", "requests", "tts_characters"] as const;
  const numbers = (): Numbers => ({
    hours: random(5) === 0 ? "0.1" : decimal(),
    requests: String(random(3) === 0 ? 0 : random(1_000_000)),
    ...(random(2) === 0 && { tts_characters: `9007199254740993${random(1_000)}` }),
  });
  const project = newProject();
  const { rotation, keys } = await usedKeys(db, project);
  const GROUPS = {
    none: [""],
    model: ["nova-3", "aura-2", "<b>", "'; --"],
    accessor: ["k", ...keys],
    tags: ["a", "b"],
  };
  const stored = new Map(
    Object.entries(GROUPS).map(([grouping, groups]) => [grouping as Grouping, randomDays(groups, numbers)]),
  );
  const usage = [...stored].map(([grouping, days]) => ({
    ...{ project, grouping, due: { start: back(DAYS), end: back(1) } },
    usage: Object.fromEntries([...days].map(([day, rows]) => [back(day), rows])),
  }));
  for (const seriesId of await storeSeries(db, usage))
    await failOn(db, seriesId, [back(1 + random(DAYS)), back(1 + random(DAYS))]);

  const nameOf = (grouping: string) => (group: string) =>
    ({ none: "", tags: JSON.stringify([group]) })[grouping] ?? (keys.includes(group) ? rotation : group);
  await expectEach("usage_change", sql`c.metric || ' ' || c."grouping"`, sql`c.group_value`, (pair) => {
    const source = withMostDays(["none", "model", "accessor"] as const, (one) => daysRead(stored.get(one), pair));
    const totalDays = stored.get(source ?? "none") ?? NO_DAYS;
    const expected = METRICS.flatMap((metric) => {
      const amounts = (days: Days<Numbers>, grouping: string) =>
        amountsOf(days, (made) => exact(made[metric] ?? "0"), nameOf(grouping));
      const totals = amounts(totalDays, "none");
      // A metric that the total lacks has no rows.
      const sent = [...beforeOf(pair), ...afterOf(pair)].flatMap((day) => totalDays.get(day) ?? []);
      if (!sent.some(([, made]) => made[metric])) return [];
      return [...stored].map(([grouping, days]) => {
        const groups = grouping === "none" ? totals : amounts(days, grouping);
        return [`${metric} ${grouping}`, expectedParts(totals, groups, pair)] as const;
      });
    });
    return Object.fromEntries(expected);
  });
});

test(`each row of bi.cost_change is the calculated one (seed ${seed})`, async () => {
  const [old, price, base] = [decimal(), decimal(), decimal()];
  const nova = { metric: "hours", model: "nova", currency: "USD" };
  await storePriceBook(
    db,
    { ...nova, price: old, from: back(100), until: back(21) },
    { ...nova, price, from: back(20) },
    { ...nova, price: base, model: "base", currency: "EUR", from: back(100) },
  );
  const hours = randomDays(["nova", "base", "free"], decimal);
  const usage = [...hours].map(([day, rows]) => [back(day), rows.map(([model, hours]) => [model, { hours }] as const)]);
  await storeSeries(db, [{ project: newProject(), grouping: "model", usage: Object.fromEntries(usage) }]);

  const costOf = (model: string, priceOn: (day: number) => string) => {
    const ofModel = new Map([...hours].map(([day, rows]) => [day, rows.filter(([group]) => group === model)]));
    return amountsOf(ofModel, (quantity, day) => (exact(quantity) * exact(priceOn(day))) / exact("1"));
  };
  const [usd, eur] = [costOf("nova", (day) => (day > 20 ? old : price)), costOf("base", () => base)];
  await expectEach("cost_change", sql`c.currency`, sql`c.model`, (pair) => ({
    ...{ USD: expectedParts(usd, usd, pair), EUR: expectedParts(eur, eur, pair) },
  }));
  // A change has a price effect only if each period has one price, so half of the periods begin with the new one.
  const effects = await read(sql`
    select bool_and(volume_effect + price_effect = change) as add_up, bool_or(price_effect <> 0) as some
    from generate_series(0, 19) as n cross join unnest(array[20, 25]) as start
    cross join lateral bi.cost_change(${back(0)}::date - start, ${back(0)}::date - start + n) c where part = 'group'
  `);
  expect(effects).toEqual([{ add_up: true, some: true }]);
});

test(`each row of bi.billed_change is the calculated one (seed ${seed})`, async () => {
  const GROUPS = {
    none: [""],
    line_item: ["a", "b", ""],
    tags: ["x", "y"],
    "accessor,line_item": ["k1 a", "k1 b", "k2 a"],
  };
  // Credits are below zero, and some charges have no amount.
  const dollars = () => (random(60) === 0 ? null : (random(5) === 0 ? "-" : "") + decimal());
  const stored = Object.entries(GROUPS).map(([name, groups]) => {
    const days = randomDays(groups, dollars);
    // The middle day always has a charge without an amount. By chance alone, no pair might include such a day.
    const middle = [...days.keys()][Math.floor(days.size / 2)] ?? 0;
    const [one = "", ...others] = groups;
    const rows = [[one, null] as const, ...others.map((group) => [group, dollars()] as const)];
    return { grouping: name as Grouping, days: new Map([...days, [middle, rows]]) };
  });
  const project = newProject();
  const ids = await register(db, ...stored.map(({ grouping }) => configured(project, grouping, { source: "billing" })));
  for (const [i, { grouping, days }] of stored.entries()) {
    const slices = [...days].map(([day, rows]) =>
      billed(
        back(day),
        grouping,
        rows.map(([group, amount]) => {
          const values = group.split(" ");
          return [amount, Object.fromEntries(grouping.split(",").map((dimension, n) => [dimension, values[n]]))];
        }),
      ),
    );
    await store(db, ids[i] ?? 0, slices, UNGUARDED);
  }
  // What a day cost is not known if one of its charges has no amount.
  const known = stored.map(({ grouping, days }) => ({
    dimensions: grouping === "none" ? [] : grouping.split(","),
    days: new Map([...days].filter(([, rows]) => rows.every(([, amount]) => amount !== null))),
  }));
  const dollarsOf = (amount: string | null) => exact(amount ?? "0");
  await expectEach("billed_change", sql`c."grouping"`, sql`c.group_value`, (pair) => {
    const source = withMostDays(known, ({ days }) => daysRead(days, pair));
    const totals = amountsOf(source?.days ?? NO_DAYS, dollarsOf, () => "");
    const expected = ["accessor", "line_item", "tags"].map((dimension) => {
      const holding = known.filter(({ dimensions }) => dimensions.includes(dimension));
      const groups = withMostDays(holding, ({ days }) => daysRead(days, pair));
      const nameOf = (group: string) => {
        const value = group.split(" ")[groups?.dimensions.indexOf(dimension) ?? 0] ?? "";
        return dimension === "tags" ? JSON.stringify([value]) : value;
      };
      return [dimension, expectedParts(totals, amountsOf(groups?.days ?? NO_DAYS, dollarsOf, nameOf), pair)] as const;
    });
    return { ...Object.fromEntries(expected), none: expectedParts(totals, totals, pair) };
  });
});
