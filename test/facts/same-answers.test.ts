// Asks random questions. The usage page, the API, the CSV, explain and the SQL to copy must give the amounts that this file sums up itself.

import fc from "fast-check";
import { expect, test } from "vitest";
import { queryAtOneMoment } from "../../src/db/connection/transaction.ts";
import { readAnswer } from "../../src/facts/amounts.ts";
import { type Answer, DRAWN_MAX } from "../../src/facts/answer.ts";
import { changes } from "../../src/facts/changes.ts";
import type { Question, Split } from "../../src/facts/question.ts";
import { answerCsv } from "../../src/show/csv.ts";
import { type Day, daysOf } from "../../src/usage/days.ts";
import { addsUp } from "../../src/usage/dimensions.ts";
import { GROUPINGS, type UsageGrouping } from "../../src/usage/series.ts";
import { storeFormerKeys } from "../db/keys/written-ledger.ts";
import { DIARIZED, forgetAll, storeSeries, type Usage } from "../db/reported-usage.ts";
import { sumOf } from "../db/stored-charges.ts";
import { daysBack, newProject } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";
import { exact } from "../usage/expected-costs.ts";
import { asReader, parseQuestion, usageSite } from "../web/usage-site.ts";

const { db } = await testDatabase();
const back = await daysBack(db);
const today = back(0);

const GROUP_NAMES = [
  "nova-3",
  "Nova-3",
  "'; drop table usage; --",
  "\\' or true --",
  "a\\",
  "line\nbreak -- /* */ $1 ? :x",
  "\u202egnp.exe",
  "👩‍👩‍👧 日本",
  "$$",
  "key-1",
  "key-2",
  null,
];
const AMOUNTS = ["0", "0.1", "0.7242069444", "9007199254740993", "123456789012345678.000000000000001"];
/** Keys of one rotation. Answers by accessor join them into one group, named after the rotation. */
const KEYS = ["key-1", "key-2"];
const ROTATION = "nightly";

type Project = ReturnType<typeof newProject>;
type Site = ReturnType<typeof usageSite>;
type Entry = { readonly day: Day; readonly group: string | null; readonly hours: string; readonly requests: string };
/** By project, grouping and filter. */
type Stored = ReadonlyMap<string, readonly Entry[]>;

/** The stored usage is of at most this many days. */
const USAGE_DAYS = 18;

const anEntry = fc.record({
  daysAgo: fc.integer({ min: 1, max: USAGE_DAYS }),
  group: fc.constantFrom(...GROUP_NAMES),
  hours: fc.constantFrom(...AMOUNTS),
  requests: fc.constantFrom("0", "1", "2"),
});
const aQuestion = fc.record(
  {
    period: fc.constantFrom("7d", "this-month", "last-month"),
    /** Used if `period` is missing: the length in days less one, and how many days ago the period ends. */
    days: fc.tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 0, max: 5 })),
    compare: fc.constantFrom("before", "before", "before", "none"),
    /** The field by which the first project is selected. */
    project: fc.constantFrom(undefined, "name", "id"),
    metric: fc.constantFrom("hours", "requests", "tokens_in"),
    grouping: fc.constantFrom(...GROUPINGS),
    filter: fc.constantFrom(undefined, undefined, DIARIZED.name),
    group: fc.constantFrom(undefined, undefined, undefined, ...GROUP_NAMES),
    limit: fc.constantFrom("1", "3", "20"),
    sort: fc.constantFrom("amount", "change"),
  },
  { requiredKeys: ["compare", "grouping", "metric", "limit", "sort", "project", "filter", "group", "days"] },
);

test("random questions get the same amounts from the page, the API, the CSV, the copied SQL and explain", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anEntry, { minLength: 60, maxLength: 160 }),
      fc.boolean(),
      fc.array(aQuestion, { minLength: 20, maxLength: 20 }),
      async (entries, allRead, questions) => {
        const projects = [newProject(), newProject()];
        const stored = await storeEntries(projects, entries, allRead);
        const site = usageSite(db);
        for (const fields of questions) {
          const query = queryOf(projects, fields);
          const question = parseQuestion(query, today);
          const answer = await queryAtOneMoment(db, (run) => readAnswer(run, question));
          expectSums(answer, projects, stored, allRead);
          await expectSameFromSql(answer);
          await expectSameOnSite(site, query, answer);
          await expectSameExplained(question, answer);
        }
      },
    ),
    { numRuns: 5, endOnFailure: true },
  );
});

type Fields = typeof aQuestion extends fc.Arbitrary<infer Value> ? Value : never;

/** Stores a part of the entries for each series. All days are due. If `allRead`, days without entries were read, too. */
async function storeEntries(
  projects: readonly Project[],
  entries: readonly Omit<Entry & { daysAgo: number }, "day">[],
  allRead: boolean,
) {
  await forgetAll(db);
  for (const project of projects) await storeFormerKeys(db, ROTATION, project, KEYS);
  const stored = new Map<string, readonly Entry[]>();
  const series = projects.flatMap((project, p) =>
    GROUPINGS.flatMap((grouping, g) =>
      [undefined, DIARIZED].map((filter, f) => {
        const own = entries
          .filter((_, i) => i % 3 !== (p + g + f) % 3)
          .map(({ daysAgo, ...entry }): Entry => ({ ...entry, day: back(daysAgo) }));
        const perDay = Map.groupBy(own, ({ day }) => day);
        const kept = [...perDay.values()].flatMap((ofDay) => distinct(grouping === "none" ? ofDay.slice(0, 1) : ofDay));
        stored.set(seriesKey(project.id, grouping, filter?.name), kept);
        const due = { start: back(USAGE_DAYS), end: back(1) };
        const read = allRead ? Object.fromEntries(daysOf(due).map((day) => [day, []])) : {};
        const usage = { ...read, ...usageOf(grouping, kept) };
        return { project, grouping, ...(filter && { filter }), windowDays: 3, usage, due };
      }),
    ),
  );
  await storeSeries(db, series);
  return stored;
}

function distinct(entries: readonly Entry[]): readonly Entry[] {
  return [...new Map(entries.map((entry) => [entry.group, entry])).values()];
}

function seriesKey(projectId: string, grouping: Split, filter: string | null | undefined): string {
  return JSON.stringify([projectId, grouping, filter ?? null]);
}

function usageOf(grouping: UsageGrouping, entries: readonly Entry[]): Usage {
  const days = Map.groupBy(entries, ({ day }) => day);
  return Object.fromEntries(
    [...days].map(([day, ofDay]) => [
      day,
      ofDay.map(({ group, hours, requests }) => {
        const value = grouping === "tags" && group !== null ? [group] : group;
        return [value, { hours, requests }] as const;
      }),
    ]),
  );
}

function queryOf(projects: readonly Project[], { period, days, project, group, ...rest }: Fields): URLSearchParams {
  const [lengthLessOne, endDaysAgo] = days;
  const named: Record<string, string | undefined> = {
    ...(period === undefined ? { from: back(endDaysAgo + lengthLessOne), to: back(endDaysAgo) } : { period }),
    project: project && projects[0]?.[project as "id" | "name"],
    ...groupParameters(rest.grouping, group),
    ...rest,
  };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(named)) if (value !== undefined) query.set(name, value);
  return query;
}

function groupParameters(grouping: Split, group: string | null | undefined): Readonly<Record<string, string>> {
  if (grouping === "none" || group === undefined) return {};
  return group === null ? { "no-value": "yes" } : { group: groupText(grouping, group) };
}

function groupText(grouping: Split, group: string): string {
  if (grouping === "tags") return JSON.stringify([group]);
  return grouping === "accessor" && KEYS.includes(group) ? ROTATION : group;
}

/** The entries of the project's series that answers the question. */
const entriesOf = (stored: Stored, { grouping, filter }: Answer["question"], { id }: Project) =>
  stored.get(seriesKey(id, grouping, filter)) ?? [];

/** Whether both periods were read: every project, on every day. */
function areBothRead(question: Answer["question"], projects: readonly Project[], stored: Stored, allRead: boolean) {
  const { from, to, before } = question;
  if (before === null) return false;
  const wanted = [...daysOf({ start: from, end: to }), ...daysOf({ start: before.from, end: before.to })];
  const dueDays = daysOf({ start: back(USAGE_DAYS), end: back(1) });
  return projects.every((project) => {
    const read = new Set(allRead ? dueDays : entriesOf(stored, question, project).map(({ day }) => day));
    return wanted.every((day) => read.has(day));
  });
}

function expectSums(answer: Answer, projects: readonly Project[], stored: Stored, allRead: boolean): void {
  const { question, days, groups, other, total, otherByDay, beforeByDay, lacking } = answer;
  const { metric, grouping, from, to, before, limit } = question;
  const askedProjects = projects.filter(({ id }) => question.project === null || question.project === id);
  const entries = askedProjects
    .flatMap((project) => entriesOf(stored, question, project))
    .map((entry) => ({
      day: entry.day,
      group: grouping === "none" || entry.group === null ? null : groupText(grouping, entry.group),
      amount: metric === "tokens_in" ? null : entry[metric as "hours" | "requests"],
    }))
    .filter(({ group }) => question.group === null || question.group.value === group);
  const sumIn = (window: { from: Day; to: Day } | null, some: typeof entries) =>
    window && sum(some.filter(({ day }) => day >= window.from && day <= window.to).map(({ amount }) => amount));
  const isCompared = areBothRead(question, askedProjects, stored, allRead);
  expect(answer.compared).toBe(isCompared);
  const amountsOf = (some: typeof entries) => {
    const [amount, earlier] = [sumIn({ from, to }, some), sumIn(before, some)];
    // With "0" the change is known even if neither period has an amount.
    return { amount, before: earlier, change: isCompared ? sum([amount, earlier && `-${earlier}`, "0"]) : null };
  };
  const isRead = lacking.incompleteDays.length + lacking.unreadDays.length === 0;
  const isReadBefore = lacking.incompleteDaysBefore.length + lacking.unreadDaysBefore.length === 0;
  const absoluteChange = ({ change }: { readonly change: string | null }) => change?.replace("-", "") ?? null;
  const byChange = (a: ReturnType<typeof amountsOf>, b: ReturnType<typeof amountsOf>) =>
    question.sort === "change" && isCompared ? compare(absoluteChange(b), absoluteChange(a)) : 0;
  const expected = [...Map.groupBy(entries, ({ group }) => group)]
    .map(([group, ofGroup]) => ({ group, ofGroup, ...amountsOf(ofGroup) }))
    .filter(({ amount, before: earlier }) => [amount, earlier].some((one) => one !== null && one !== "0"))
    .sort(
      (a, b) =>
        byChange(a, b) || compare(b.amount, a.amount) || compare(b.before, a.before) || byName(a.group, b.group),
    );
  const ranked = groups.toSorted((a, b) => a.rank - b.rank);
  const sums = addsUp(grouping) ? [amountsOf(entries)] : expected.slice(0, limit);
  // A group without an amount in a period that was read in full has 0, unless the service sent no amount for any group.
  const zero = isRead && sums.some(({ amount }) => amount !== null) ? "0" : null;
  const zeroBefore = isReadBefore && sums.some(({ before: earlier }) => earlier !== null) ? "0" : null;
  const orZero = <T extends ReturnType<typeof amountsOf>>(given: T) => ({
    ...given,
    amount: given.amount ?? zero,
    before: given.before ?? zeroBefore,
  });
  expect(ranked.map(({ byDay: _, label: __, rank, ...group }) => ({ ...group, rank }))).toEqual(
    expected.slice(0, limit).map(({ ofGroup: _, ...group }, i) => ({ ...orZero(group), rank: i + 1 })),
  );
  const rest = expected.slice(limit).flatMap(({ ofGroup }) => ofGroup);
  const NONE = { amount: null, before: null, change: null };
  expect(other).toEqual(
    expected.length > limit
      ? { groups: expected.length - limit, ...(addsUp(grouping) ? orZero(amountsOf(rest)) : NONE) }
      : null,
  );
  expect(total).toEqual(addsUp(grouping) ? orZero(amountsOf(entries)) : null);
  const byDayOf = (some: typeof entries) =>
    days.map(({ day, state }) => {
      const isDayRead = state === "final" || state === "settling";
      return sumIn({ from: day, to: day }, some) ?? (isDayRead ? "0" : null);
    });
  for (const [i, { byDay }] of ranked.entries())
    expect(byDay).toEqual(i < DRAWN_MAX ? byDayOf(expected[i]?.ofGroup ?? []) : undefined);
  const drawn = new Set(expected.slice(0, Math.min(DRAWN_MAX, limit)).map(({ group }) => group));
  // A group whose amounts are all 0 is not listed, but is one of these: on an incomplete day, it makes their amount 0 instead of unknown.
  const notDrawn = entries.filter(({ group }) => !drawn.has(group));
  if (!addsUp(grouping)) expect(otherByDay).toBeNull();
  else if (otherByDay) expect(otherByDay).toEqual(byDayOf(notDrawn));
  else expect(sumIn({ from, to }, notDrawn) ?? "0").toBe("0");
  expect(beforeByDay?.map(({ amount }) => amount ?? "0")).toEqual(
    before && addsUp(grouping)
      ? daysOf({ start: before.from, end: before.to }).map((day) => sumIn({ from: day, to: day }, entries) ?? "0")
      : undefined,
  );
}

/** Groups whose amounts are all 0 are in the statement's rows but not in the answer, so 0 counts as no amount here. */
async function expectSameFromSql({ sql: statement, question, groups, other, days }: Answer): Promise<void> {
  const { from, to, before } = question;
  const rows = await asReader(db, statement);
  const rowsIn = (window: { from: Day; to: Day } | null, some: typeof rows) =>
    some.filter(({ usage_date: day }) => window && String(day) >= window.from && String(day) <= window.to);
  const amountIn = (some: typeof rows) => {
    const amount = sum(some.map((row) => row.amount ?? null));
    return amount === "0" ? null : amount;
  };
  const ofGroups = Map.groupBy(rows, ({ group }) => group ?? null);
  for (const { group, amount, before: earlier, byDay } of groups) {
    const ofGroup = ofGroups.get(group) ?? [];
    const withoutZero = (one: string | null | undefined) => (one === "0" ? null : (one ?? null));
    const found = [{ from, to }, before].map((window) => amountIn(rowsIn(window, ofGroup)));
    expect(found).toEqual([amount, earlier].map(withoutZero));
    for (const [i, amountOn] of (byDay ?? []).entries())
      expect(amountIn(ofGroup.filter(({ usage_date: day }) => day === days[i]?.day))).toBe(withoutZero(amountOn));
    ofGroups.delete(group);
  }
  const rest = [...ofGroups.values()].filter((ofGroup) => amountIn(ofGroup) !== null);
  expect(rest).toHaveLength(other?.groups ?? 0);
}

async function expectSameOnSite(site: Site, query: URLSearchParams, answer: Answer): Promise<void> {
  const bodyOf = async (path: string) => String((await site[path]?.(query))?.body);
  expect(JSON.parse(await bodyOf("/api/v1/usage"))).toEqual(JSON.parse(JSON.stringify(answer)));
  const csv = await bodyOf("/api/v1/usage.csv");
  expect(csv).toBe(answerCsv(answer, "groups"));
  const page = await bodyOf("/usage");
  for (const { amount, before, change } of answer.groups) {
    const shown = answer.compared ? [amount, before, before === null ? null : change] : [amount];
    for (const one of shown) if (one !== null) expect(page).toContain(`<data value="${one}"`);
    expect(csv).toContain([amount, before, change].map((one) => one ?? "").join(","));
  }
}

/** Compares the amounts that `explain` and the page of changes show. They compare two periods, and select neither by filter nor by group. */
async function expectSameExplained(question: Question, answer: Answer): Promise<void> {
  const { before, filter, group, grouping } = question;
  if (before === undefined || filter !== undefined || group !== undefined || grouping === "none") return;
  const [explained, total] = await queryAtOneMoment(db, async (run) => [
    await changes(run, { ...question, before, groupings: [grouping], limit: 50 }),
    await readAnswer(run, { ...question, grouping: "none" }),
  ]);
  expect(explained.answer.total).toEqual(total.total);
  const parts = explained.splits.flatMap((split) => split.parts);
  for (const part of parts) {
    const inAnswer = answer.groups.find((one) => part.part === "group" && one.group === part.group);
    const expected = [inAnswer?.before ?? "0", inAnswer?.amount ?? "0", inAnswer?.change];
    if (inAnswer) expect([part.before, part.after, part.change]).toEqual(expected);
  }
  if (parts.length > 0) expect(sum(parts.map(({ change }) => change))).toBe(explained.answer.total?.change);
}

function sum(amounts: readonly (string | null)[]): string | null {
  const known = amounts.filter((amount) => amount !== null);
  return known.length === 0 ? null : sumOf(known);
}

function compare(a: string | null, b: string | null): number {
  const [left, right] = [a, b].map((amount) => (amount === null ? -1n : exact(amount))) as [bigint, bigint];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Orders by bytes, with no value last. */
function byName(a: string | null, b: string | null): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
