// Why usage or cost rose or fell: the amounts of two periods, split by each grouping. The parts of a split add up to the change exactly.

import { difference, sumOf } from "../decimal.ts";
import { addsUp } from "../usage/dimensions.ts";
import { readAnswer, readTotalBasis } from "./amounts.ts";
import type { Amounts, Answer } from "./answer.ts";
import { projectConditions, type Question, type Split } from "./question.ts";
import { findProjects, type Query, readCurrencies } from "./scope.ts";

export type ChangeQuestion = Pick<Question, "period" | "projects" | "metric" | "currency" | "limit"> & {
  readonly before: NonNullable<Question["before"]>;
  /** Undefined for all that are exported. */
  readonly groupings?: readonly Split[] | undefined;
};

type ChangeAmounts = { readonly before: string; readonly after: string; readonly change: string };

export type Change = {
  /** About the total. Its change is null if the periods can't be compared: `lacking` says why. */
  readonly answer: Answer;
  /** Empty if the change of the total is null. */
  readonly splits: readonly ChangeSplit[];
};

export type ChangeSplit = {
  readonly grouping: Split;
  readonly lacking: Answer["lacking"];
  /** The part with the largest change comes first. Empty if the periods can't be compared by this grouping: `lacking` says why. */
  readonly parts: readonly ChangePart[];
};

export type ChangePart = ChangeAmounts &
  Readonly<Pick<Answer["groups"][number], "group" | "label">> & {
    /**
     * - "others": the groups that are not listed, added up
     * - "not attributed": the rest of the total, which no other part accounts for; below 0 where groups overlap
     */
    readonly part: "group" | "others" | "not attributed";
    /** Null if the part is not a group; then `group` and `label` are null, too. */
    readonly status: "new" | "vanished" | "changed" | "same" | null;
    /** How many groups the part stands for. For "not attributed" it is 0, unless groups overlap. */
    readonly groups: number;
  };

/** Throws InvalidQuestion if there is no such project. */
export async function changes(query: Query, { groupings, ...asked }: ChangeQuestion): Promise<Change> {
  const question = { ...asked, sort: "change" } as const;
  // If the total itself is not exported, it is read from a grouping that adds up to it. `basis` belongs to that grouping.
  const { totalGrouping, available, basis } = await readTotalBasis(query, { ...question, grouping: "none" });
  const answer = await readAnswer(query, { ...question, grouping: totalGrouping }, basis);
  const { total, projectCount } = answer;
  const splits: ChangeSplit[] = [];
  if (total?.change == null) return { answer, splits };
  for (const grouping of groupings ?? available) {
    const isSplit = grouping !== "none" && (grouping !== "project" || projectCount > 1);
    if (!isSplit || !available.includes(grouping)) continue;
    const split = await readAnswer(query, { ...question, grouping }, undefined, { countsUnpriced: false });
    splits.push({ grouping, lacking: split.lacking, parts: split.compared ? partsOf(split, total) : [] });
  }
  return { answer, splits };
}

function partsOf({ question: { grouping }, groups, other }: Answer, total: Amounts): readonly ChangePart[] {
  const none = { group: null, label: null, status: null };
  const parts = groups.map(({ group, label, ...amounts }): ChangePart => {
    const change = changeAmounts(amounts);
    return { part: "group", group, label, status: statusOf(change), groups: 1, ...change };
  });
  if (other && addsUp(grouping)) parts.push({ part: "others", ...none, groups: other.groups, ...changeAmounts(other) });
  const all = changeAmounts(total);
  const restOf = (name: keyof ChangeAmounts) => difference(all[name], sumOf(...parts.map((part) => part[name])));
  const rest = { before: restOf("before"), after: restOf("after"), change: restOf("change") };
  // If groups overlap, this part also stands for the groups that are not listed.
  if (Object.values(rest).some((amount) => amount !== "0"))
    parts.push({ part: "not attributed", ...none, groups: addsUp(grouping) ? 0 : (other?.groups ?? 0), ...rest });
  return parts;
}

function changeAmounts({ amount, before }: Amounts): ChangeAmounts {
  const [after, earlier] = [amount ?? "0", before ?? "0"];
  return { before: earlier, after, change: difference(after, earlier) };
}

function statusOf({ before, after, change }: ChangeAmounts): ChangePart["status"] {
  if (change === "0") return "same";
  if (before === "0") return "new";
  return after === "0" ? "vanished" : "changed";
}

/** How the billed cost changed; then, by currency, the estimate for projects without bills, or for all if bills can't be compared. */
export async function costChanges(query: Query, question: Omit<ChangeQuestion, "metric" | "currency">) {
  const projectIds = question.projects && (await findProjects(query, question.projects));
  const projects = await query<{ id: string; isBilled: boolean }>(`
select project_id as id, bool_or(source = 'billing' and unfiltered and active) as "isBilled" from bi.series
where ${projectConditions({ projectIds })[0] ?? "true"} group by project_id order by 1`);
  const billed = projects.flatMap(({ id, isBilled }) => (isBilled ? id : []));
  const others = projects.flatMap(({ id, isBilled }) => (isBilled ? [] : id));
  const changed: Change[] = [];
  if (billed.length > 0) changed.push(await changes(query, { ...question, metric: "billed_cost", projects: billed }));
  const isBilledCostCompared = changed.some(({ answer }) => answer.total?.change != null);
  const toEstimate = isBilledCostCompared ? others : question.projects;
  if (toEstimate === undefined || toEstimate.length > 0)
    for (const currency of await readCurrencies(query))
      changed.push(await changes(query, { ...question, metric: "estimated_cost", currency, projects: toEstimate }));
  return changed;
}
