// Made-up facts for tests of pages, in place of facts read from the database.

import type { Answer } from "../../src/facts/answer.ts";
import type { Coverage } from "../../src/facts/coverage.ts";
import type { Overview } from "../../src/facts/overview.ts";
import { daysOf, type Window } from "../../src/usage/days.ts";

const LAST_DAY = "2026-03-09";
export const PERIOD: Window = { start: "2026-02-10", end: LAST_DAY };
export const BEFORE: Window = { start: "2026-01-13", end: "2026-02-09" };

export const NOTHING_LACKING: Answer["lacking"] = {
  ...{ incompleteDays: [], unreadDays: [], incompleteDaysBefore: [], unreadDaysBefore: [] },
  ...{ projectsLeftOut: [], projectsLeftOutCount: 0, projectsEnded: [], projectsEndedCount: 0 },
  ...{ unpricedModels: 0, unpricedMetrics: [], otherCurrencies: [] },
};

type Group = { readonly group: string | null; readonly label?: string; readonly amount?: string };
type AnswerParts = Partial<Omit<Answer, "groups" | "question">> & {
  readonly question?: Partial<Answer["question"]>;
  readonly groups?: readonly Group[];
  readonly period?: Window;
};

/** A group without an amount gets 1,100 divided by its rank. Before, each group had 1,000, except for the second, which is new. */
export function makeAnswer({ question, groups = [], period = PERIOD, ...parts }: AnswerParts = {}): Answer {
  const days = daysOf(period).map((day) => ({ day, state: "final" as const }));
  const all = groups.map(({ group, label = null, amount }, i) => {
    const now = amount ?? String(1100 / (i + 1));
    const byDay = days.map((_, day) => String(((day * 37) % 17) + 1 / (i + 2)));
    const amounts = { amount: now, before: i === 1 ? "0" : "1000", change: "100" };
    return { rank: i + 1, group, label, ...amounts, ...(i < 8 && { byDay }) };
  });
  return {
    question: {
      ...{ from: period.start, to: period.end, before: { from: BEFORE.start, to: BEFORE.end }, project: null },
      ...{ metric: "hours", currency: null, grouping: "model", filter: null, group: null, limit: 8, sort: "amount" },
      ...question,
    },
    ...{ complete: true, compared: true, lacking: NOTHING_LACKING, projects: ["production"], projectCount: 1 },
    available: { groupings: ["none", "model", "accessor", "tags"], filters: [], currencies: [] },
    ...{ days, groups: all, other: null, otherByDay: null },
    total: { amount: "1619.7242069444444", before: "1480.25", change: "139.4742069444444" },
    beforeByDay: null,
    sql: "select 1",
    ...parts,
  };
}

const MODELS = ["nova-3", '["nova-3","aura-2"]', "nova-2-general", "whisper-large", "flux-general-en"];
const TAGS = ['["batch","team-0"]', '["team-1"]', "[]"];

export function makeOverview(parts: Partial<Overview> = {}): Overview {
  const named = (names: readonly string[]) => names.map((group) => ({ group }));
  const keys = Array.from({ length: 8 }, (_, i) => ({
    ...{ group: `8f3c${i}a2e-55d1-4b0e`, ...(i % 2 && { label: `service ${i}` }) },
  }));
  return {
    ...{ period: PERIOD, cost: undefined, monthSoFar: undefined },
    figures: [
      { metric: "hours", amount: "1619.7242069444444", before: "1503.9" },
      { metric: "tokens_in", amount: "0", before: "0" },
      { metric: "tts_characters", amount: "9158866", before: "0" },
      { metric: "requests", amount: "373381", before: "390112" },
    ],
    total: makeAnswer({ question: { grouping: "none" } }),
    splits: [
      makeAnswer({ groups: named(MODELS), other: { groups: 12, amount: "3", before: "2", change: "1" } }),
      makeAnswer({ question: { grouping: "accessor" }, groups: keys }),
      makeAnswer({ question: { grouping: "tags" }, groups: named(TAGS), total: null }),
    ],
    ...parts,
  };
}

export function makeCoverage(parts: Partial<Coverage> = {}): Coverage {
  const days = Object.fromEntries(daysOf(PERIOD).map((day) => [day, "complete" as const]));
  const read = { freshThrough: LAST_DAY, fetchedAt: new Date("2026-03-10T02:15:31Z") };
  return {
    projectCount: 1,
    projects: [{ project: "production", projectId: "project-0", days, ...read, gaps: [] }],
    undated: [],
    ...parts,
  };
}
