// Checks for `check` whether the answers to an export without a window carry dates and, if not, which span of time they provably
// cover.

import { snapshotSteps } from "../db/usage/undated-snapshots.ts";
import type { NormalisedSlice } from "../usage/columns.ts";
import { addDays, type Window } from "../usage/days.ts";
import { METRICS } from "../usage/metrics.ts";
import type { ExportJob } from "../usage/plan.ts";
import { type ProvenSpan, provenSpan, type Undated } from "../usage/slice.ts";
import {
  type CheckResult,
  fail,
  fetchAnswer,
  ok,
  type Probe,
  rowCount,
  slicesOf,
  totalOf,
  warn,
} from "./project-probe.ts";

type Proof = { readonly span: ProvenSpan; readonly by: string };

/** `jobs` are exports without a window. */
export async function checkUndated(probe: Probe, jobs: readonly ExportJob[]): Promise<CheckResult> {
  const declared = jobs.map(({ undated }) => undated).find((undated) => undated !== "snapshot");
  const answer = await readIgnoringDays(probe, undefined);
  if (!answer.some(({ undated }) => undated)) {
    return declared === undefined
      ? ok("the answers name their days")
      : warn(`the answers name their days, so "undated": "${declared}" has no effect`);
  }
  if (rowCount(answer) === 0) {
    return ok("no usage, so it is unknown whether the answers carry dates");
  }
  const proof = (await provenByWindow(probe, answer)) ?? (await provenBySteps(probe));
  return declared === undefined ? undeclaredResult(proof) : declaredResult(declared, proof);
}

const WITHOUT_DATE =
  "the answers carry no date: they are snapshots in bi.usage_snapshot, and in no usage view, total or report";

const HOW_TO_PROVE =
  "which span of time they cover is not proved yet: let the export run several times a day for some days, and check again";

function undeclaredResult(proof: Proof | undefined): CheckResult {
  if (!proof) return warn(`${WITHOUT_DATE}; ${HOW_TO_PROVE}`);
  if (proof.span === "running-total") return warn(`${WITHOUT_DATE}; ${proof.by}`);
  const may = `the configuration may say ${declaration(proof.span)}`;
  return warn(`${WITHOUT_DATE}; ${proof.by}, so ${may}`);
}

function declaredResult(declared: Undated, proof: Proof | undefined): CheckResult {
  const configured = `"undated": "${declared}" is configured`;
  if (!proof) return fail(`${configured}, and the answers carry no date; remove it, because ${HOW_TO_PROVE}`);
  if (proof.span === declared) return ok(`the answers carry no date; ${proof.by}, as ${configured}`);
  const instead = proof.span === "running-total" ? "remove it" : `it is ${declaration(proof.span)}`;
  return fail(`${configured}, and ${proof.by}: ${instead}`);
}

function declaration(span: "day" | "day-before"): string {
  return span === "day"
    ? '"undated": "day", which stores them under the day on which they are read (what is used after that is missing, so run late in the UTC day)'
    : '"undated": "day-before", which stores them under the day before that on which they are read';
}

const BY_STEPS: Readonly<Record<ProvenSpan, string>> = {
  "running-total": "they grew within a day and never fell, as a running total does, which is not the usage of a day",
  day: "they grew within each day and fell by more than half at every midnight (UTC): they count from midnight on",
  "day-before": "they stayed the same within each day, and fell from day to day as only the usage of a day does",
};

/** Proves the span by how the stored answers without a date changed from one to the next. */
async function provenBySteps({ db, project }: Probe): Promise<Proof | undefined> {
  const span = db && provenSpan(await snapshotSteps(db, project.id));
  return span && { span, by: BY_STEPS[span] };
}

/**
 * Proves the span by requests with windows, which a service may honour although its answers carry no date. It honours them if the
 * answers for two single days add up to the answer for both. The answer without a window then covers the day whose answer it equals.
 */
async function provenByWindow(probe: Probe, answer: readonly NormalisedSlice[]): Promise<Proof | undefined> {
  const yesterday = addDays(probe.today, -1);
  const before = addDays(yesterday, -1);
  const of = (start: string, end: string) => readIgnoringDays(probe, { start, end });
  const [one, other, both] = [await of(yesterday, yesterday), await of(before, before), await of(before, yesterday)];
  const [a, b, sum] = [amountOf(one), amountOf(other), amountOf(both)];
  if (a <= 0 || b <= 0 || Math.abs(a + b - sum) > 1e-9 * sum) return undefined;
  const by = (day: string) =>
    `requests for one day and for two show that the service honours the window; without one it answers with ${day}`;
  if (isSame(answer, one)) return { span: "day-before", by: by("yesterday's usage") };
  const today = await of(probe.today, probe.today);
  return isSame(answer, today) ? { span: "day", by: by("today's usage up to now") } : undefined;
}

/** Requests all usage, and reads the answer as one without a window, which need not name any day. */
async function readIgnoringDays(probe: Probe, window: Window | undefined): Promise<NormalisedSlice[]> {
  const series = totalOf(probe);
  return slicesOf(probe, { series, window: undefined }, await fetchAnswer(probe, { series, window }));
}

const REQUESTS = METRICS.indexOf("requests");
const HOURS = METRICS.indexOf("hours");

/** A sum of doubles, precise enough for a comparison. */
function amountOf(answer: readonly NormalisedSlice[]): number {
  const amounts = answer.flatMap(({ columns: { groups, metrics } }) =>
    groups.map((_, row) => metrics[REQUESTS]?.[row] ?? metrics[HOURS]?.[row] ?? 0),
  );
  return amounts.reduce<number>((sum, amount) => sum + Number(amount), 0);
}

function isSame(a: readonly NormalisedSlice[], b: readonly NormalisedSlice[]): boolean {
  const numbers = (answer: readonly NormalisedSlice[]) =>
    answer.flatMap(({ rowCount, contentHash }) => (rowCount > 0 ? [contentHash] : [])).join();
  return numbers(a) === numbers(b);
}
