// Why usage or cost rose or fell: the amounts of two periods, split by each grouping. The parts of a split add up to the change exactly.

import { difference, sumOf } from "../decimal.ts";
import { addsUp } from "../usage/dimensions.ts";
import { amounts, readTotalSplit } from "./amounts.ts";
import type { Answer } from "./answer.ts";
import type { Question, Split } from "./question.ts";
import { type Query, readBasis } from "./scope.ts";
import { projectConditions } from "./sql.ts";

export type ChangeQuestion = Pick<Question, "period" | "projects" | "metric" | "currency" | "limit"> & {
  readonly before: NonNullable<Question["before"]>;
  /** Undefined for all that are exported. */
  readonly groupings?: readonly Split[] | undefined;
};

type ChangeAmounts = { readonly before: string; readonly after: string; readonly change: string };

export type Change = {
  /** About the total. Its change is null unless every day of both periods was read: `lacking` names the other days. */
  readonly answer: Answer;
  /** Empty if there is no change. */
  readonly splits: readonly ChangeSplit[];
};

export type ChangeSplit = {
  readonly grouping: Split;
  readonly lacking: Answer["lacking"];
  /** The part with the largest change comes first. Empty if a day is not complete by this grouping, or was not read by it. */
  readonly parts: readonly ChangePart[];
};

export type ChangePart = ChangeAmounts & {
  /**
   * - "others": the groups that are not listed, added up
   * - "not attributed": what the total has and no listed group accounts for; below 0 where groups overlap
   */
  readonly part: "group" | "others" | "not attributed";
  /** Null for no value, and if it is no group. */
  readonly group: string | null;
  readonly label: string | null;
  readonly projectInLabel?: string | undefined;
  /** Null if it is no group. */
  readonly status: "new" | "vanished" | "changed" | "same" | null;
  /** How many groups the part has. */
  readonly groups: number;
};

/** Fields that are the same in every question about a change, whatever the caller passes. */
const LARGEST_CHANGES = { filter: undefined, group: undefined, sort: "change" } as const;

/** Throws InvalidQuestion if there is no such project. */
export async function changes(query: Query, { groupings, ...asked }: ChangeQuestion): Promise<Change> {
  const question = { ...asked, ...LARGEST_CHANGES };
  // `totalSplit` is a grouping whose groups add up to the total: "none" may not be exported.
  const { totalSplit, available, basis } = await readTotalSplit(query, { ...question, grouping: "none" });
  const total = await amounts(query, { ...question, grouping: totalSplit }, basis);
  const splits: ChangeSplit[] = [];
  for (const grouping of total.total?.change == null ? [] : (groupings ?? available)) {
    // A project by itself is no split.
    const isSplit = grouping !== "none" && (grouping !== "project" || total.projectCount > 1);
    if (!isSplit || !available.includes(grouping)) continue;
    const answer = await amounts(query, { ...question, grouping }, undefined, { countsUnpriced: false });
    splits.push({ grouping, lacking: answer.lacking, parts: answer.compared ? partsOf(answer, total) : [] });
  }
  return { answer: total, splits };
}

function partsOf({ question: { grouping }, groups, other }: Answer, { total }: Answer): readonly ChangePart[] {
  const none = { group: null, label: null, status: null };
  const parts = groups.map((one): ChangePart => {
    const sums = changeAmounts(one);
    const { group, label, projectInLabel } = one;
    return { part: "group", group, label, projectInLabel, status: statusOf(sums), groups: 1, ...sums };
  });
  if (other && addsUp(grouping)) parts.push({ part: "others", ...none, groups: other.groups, ...changeAmounts(other) });
  const rest = unattributed(changeAmounts(total ?? { amount: null, before: null }), parts);
  // Where groups overlap, this part has the groups that are not listed.
  if (Object.values(rest).some((amount) => amount !== "0"))
    parts.push({ part: "not attributed", ...none, groups: addsUp(grouping) ? 0 : (other?.groups ?? 0), ...rest });
  return parts;
}

function changeAmounts({ amount, before }: Pick<Answer["groups"][number], "amount" | "before">): ChangeAmounts {
  const [after, earlier] = [amount ?? "0", before ?? "0"];
  return { before: earlier, after, change: difference(after, earlier) };
}

function statusOf({ before, after, change }: ChangeAmounts): ChangePart["status"] {
  if (change === "0") return "same";
  if (before === "0") return "new";
  return after === "0" ? "vanished" : "changed";
}

function unattributed(total: ChangeAmounts, parts: readonly ChangeAmounts[]): ChangeAmounts {
  const rest = (name: keyof ChangeAmounts) => difference(total[name], sumOf(...parts.map((part) => part[name])));
  return { before: rest("before"), after: rest("after"), change: rest("change") };
}

/** Whether the service sent any of it in either period. */
export function isKnown({ answer: { total } }: Change): boolean {
  return (total?.amount ?? total?.before ?? null) !== null;
}

/**
 * The changes of the cost: what the service charges in projects whose billing is read, and the estimate of the others, in each currency.
 * If the charges can't be compared yet, as in the first weeks of billing, all projects are estimated.
 */
export async function costChanges(query: Query, question: Omit<ChangeQuestion, "metric" | "currency">) {
  const fixed = { ...LARGEST_CHANGES, metric: "estimated_cost", grouping: "none" } as const;
  const { scope } = await readBasis(query, { ...question, ...fixed });
  const known = await query<{ id: string; isBilled: boolean }>(`
select project_id as id, bool_or(source = 'billing' and unfiltered and active) as "isBilled" from bi.series
where ${projectConditions(scope)[0] ?? "true"} group by project_id order by 1`);
  const billed = known.flatMap(({ id, isBilled }) => (isBilled ? id : []));
  const others = known.flatMap(({ id, isBilled }) => (isBilled ? [] : id));
  const found: Change[] = [];
  if (billed.length > 0) found.push(await changes(query, { ...question, metric: "billed_cost", projects: billed }));
  const isExplained = found.some(({ answer }) => answer.total?.change != null);
  const estimated = isExplained ? others : question.projects;
  if (estimated?.length !== 0)
    for (const currency of scope.available.currencies)
      found.push(await changes(query, { ...question, metric: "estimated_cost", currency, projects: estimated }));
  return found.filter(isKnown);
}
