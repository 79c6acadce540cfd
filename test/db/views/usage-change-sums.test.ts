// On 1,000 random pairs of periods: the rows of bi.usage_change add up to the change of the total, by an independent calculation over
// the numbers that were stored. The usage has rotated keys, tags that overlap, days that failed or were never read, and long decimals.

import { sql } from "kysely";
import { expect, test } from "vitest";
import { recordFailure } from "../../../src/db/usage/failures.ts";
import { nextFetchNo } from "../../../src/db/usage/fetch-numbers.ts";
import type { Grouping } from "../../../src/usage/series.ts";
import { testDatabase } from "../../support/database.ts";
import { newIntent, newKey, newRotation } from "../keys/written-ledger.ts";
import { storeSeries, type Usage } from "../reported-usage.ts";
import { daysBack, type Numbers, newProject } from "../stored-usage.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

const PAIRS = 1_000;
const DAYS = 40;
const METRICS = ["hours", "requests", "tts_characters"] as const;
const GROUPS: Partial<Record<Grouping, readonly string[]>> = {
  none: ["all"],
  model: ["nova-3", "aura-2", "<b>", "'; --"],
  accessor: ["console", "first", "second"],
  tags: ["a", "b", "c"],
};

/** The same sequence for the same seed (mulberry32). */
function randomNumbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const SCALE = 20;

/** Decimals as whole numbers of 10^-20. */
function scaled(text: string): bigint {
  const [, sign = "", whole = "", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  return BigInt(`${sign}${whole}${fraction.replace(/0+$/, "").padEnd(SCALE, "0")}`);
}

const seed = Math.floor(Math.random() * 2 ** 31);
const random = randomNumbers(seed);

function decimal(): string {
  const whole = `${random(10)}${random(1_000_000_000)}`;
  return BigInt(whole).toString() + (random(2) === 0 ? "" : `.${random(1_000_000_000)}${random(1_000_000_000)}1`);
}

function numbers(): Numbers {
  return {
    hours: random(5) === 0 ? "0.1" : decimal(),
    requests: String(random(3) === 0 ? 0 : random(1_000_000)),
    ...(random(2) === 0 && { tts_characters: `9007199254740993${random(1_000)}` }),
  };
}

type DayRows = ReadonlyMap<string, Numbers>;
/** By days back; undefined for a day that was not read. */
type Stored = ReadonlyMap<number, DayRows>;

function madeUp(grouping: Grouping): Stored {
  const days = Array.from({ length: DAYS }, (_, i) => i + 1).filter(() => random(8) > 0);
  return new Map(
    days.map((day) => [
      day,
      new Map(
        (GROUPS[grouping] ?? []).filter(() => random(4) > 0).map((group): [string, Numbers] => [group, numbers()]),
      ),
    ]),
  );
}

test(`on ${PAIRS} random pairs of periods the rows add up to the change of the total (seed ${seed})`, async () => {
  const project = newProject();
  const { job, key } = await newRotation(db, { project });
  const keyIds = new Map<string, string>();
  for (const name of ["first", "second"]) {
    const intentId = newIntent();
    await key(intentId, "active");
    keyIds.set(name, newKey(intentId).apiKeyId ?? "");
  }
  const stored = new Map<Grouping, Stored>(
    (["none", "model", "accessor", "tags"] as const).map((grouping) => [grouping, madeUp(grouping)]),
  );
  const ids = await storeSeries(
    db,
    [...stored].map(([grouping, days]) => ({
      project,
      grouping,
      due: { start: back(DAYS), end: back(1) },
      usage: Object.fromEntries(
        [...days].map(([day, rows]) => [
          back(day),
          [...rows].map(([group, amounts]) => [keyIds.get(group) ?? group, amounts] as const),
        ]),
      ) satisfies Usage,
    })),
  );
  for (const seriesId of ids) {
    const days = [back(1 + random(DAYS)), back(1 + random(DAYS))];
    await recordFailure(db, { seriesId, days, fetchNo: await nextFetchNo(db), reason: "down" });
  }

  /** The first days of both periods, counted back, and their lengths. Some overlap, some reach beyond what is stored. */
  const pairs = Array.from({ length: PAIRS }, (_, pair) => {
    const length = 1 + random(12);
    const equal = random(2) === 0;
    return {
      pair,
      after: random(DAYS + 3),
      length,
      before: random(DAYS + 3),
      beforeLength: equal ? length : 1 + random(12),
    };
  });
  const { rows } = await sql<{ pair: number; metric: string; grouping: string; parts: Parts }>`
    select p.pair, c.metric, c."grouping",
      json_object_agg(c.part || coalesce(' ' || c.group_value, ''), array[
        coalesce(c.amount_before, 0)::text, coalesce(c.amount_after, 0)::text, c.change::text]) as parts
    from json_to_recordset(${JSON.stringify(pairs)}::json)
      as p (pair integer, after integer, length integer, before integer, "beforeLength" integer)
    cross join lateral bi.usage_change(
      ${back(0)}::date - p.after, ${back(0)}::date - p.after + p.length - 1,
      ${back(0)}::date - p.before, ${back(0)}::date - p.before + p."beforeLength" - 1
    ) c
    group by 1, 2, 3
  `.execute(db);
  const answers = new Map(rows.map(({ pair, metric, grouping, parts }) => [`${pair} ${metric} ${grouping}`, parts]));

  let compared = 0;
  for (const pair of pairs) {
    for (const metric of METRICS) {
      for (const grouping of stored.keys()) {
        const answer = answers.get(`${pair.pair} ${metric} ${grouping}`);
        const expected = expectedParts(stored, totalOf(stored, pair), grouping, metric, pair, job.name);
        expect([pair, metric, grouping, answer && inWholeNumbers(answer)]).toEqual([pair, metric, grouping, expected]);
        if (answer) compared++;
      }
    }
  }
  expect(compared).toBeGreaterThan(PAIRS);
});

/** Amount before, amount after, and change, by part. */
type Parts = Readonly<Record<string, readonly [string, string, string]>>;
type Pair = { readonly after: number; readonly length: number; readonly before: number; readonly beforeLength: number };

function inWholeNumbers(parts: Parts): Readonly<Record<string, readonly bigint[]>> {
  return Object.fromEntries(Object.entries(parts).map(([part, amounts]) => [part, amounts.map(scaled)]));
}

/** The series with the most days of both periods, of those whose groups do not overlap. */
function totalOf(stored: ReadonlyMap<Grouping, Stored>, pair: Pair): Grouping | undefined {
  const days = [...daysIn(pair.after, pair.length), ...daysIn(pair.before, pair.beforeLength)];
  const known = (grouping: Grouping) => days.filter((day) => stored.get(grouping)?.has(day)).length;
  const order: readonly Grouping[] = ["none", "model", "accessor"];
  const best = Math.max(...order.map(known));
  return best > 0 ? order.find((grouping) => known(grouping) === best) : undefined;
}

function daysIn(first: number, length: number): readonly number[] {
  return Array.from({ length }, (_, i) => first - i);
}

function expectedParts(
  stored: ReadonlyMap<Grouping, Stored>,
  total: Grouping | undefined,
  grouping: Grouping,
  metric: (typeof METRICS)[number],
  pair: Pair,
  rotation: string,
): Readonly<Record<string, readonly bigint[]>> | undefined {
  const totals = total && stored.get(total);
  const groups = grouping === "none" ? totals : stored.get(grouping);
  if (!totals || !groups) return undefined;
  const [before, after] = [daysIn(pair.before, pair.beforeLength), daysIn(pair.after, pair.length)];
  if (grouping !== "none" && ![...before, ...after].some((day) => groups.has(day))) return undefined;
  const isRead = (day: number | undefined) => day !== undefined && totals.has(day) && groups.has(day);
  const isCompared = (i: number) => isRead(before[i]) && isRead(after[i]);
  const sent = [...before, ...after].flatMap((day) => [...(totals.get(day)?.values() ?? [])]);
  if (!sent.some((row) => row[metric] !== undefined)) return undefined;

  const all = new Map<string, [bigint, bigint]>();
  const add = (part: string, side: 0 | 1, amount: bigint) => {
    const sums = all.get(part) ?? [0n, 0n];
    sums[side] += amount;
    all.set(part, sums);
  };
  for (const [side, days] of [before, after].entries()) {
    for (const [i, day] of days.entries()) {
      const ofTotal = [...(totals.get(day)?.values() ?? [])].reduce((sum, row) => sum + scaled(row[metric] ?? "0"), 0n);
      if (!isCompared(i)) add("days not compared", side as 0 | 1, ofTotal);
      else if (grouping === "none") add("group", side as 0 | 1, ofTotal);
      else {
        add("not attributed", side as 0 | 1, ofTotal);
        for (const [group, row] of groups.get(day) ?? []) {
          const amount = scaled(row[metric] ?? "0");
          const name =
            grouping === "tags"
              ? JSON.stringify([group])
              : grouping === "accessor" && group !== "console"
                ? rotation
                : group;
          add(`group ${name}`, side as 0 | 1, amount);
          add("not attributed", side as 0 | 1, -amount);
        }
      }
    }
  }
  if (grouping === "none" && !all.has("group")) all.set("group", [0n, 0n]);
  const shown = [...all].filter(([part, sums]) => part === "group" || sums.some((sum) => sum !== 0n));
  return shown.length === 0
    ? undefined
    : Object.fromEntries(shown.map(([part, [was, is]]) => [part, [was, is, is - was]]));
}
