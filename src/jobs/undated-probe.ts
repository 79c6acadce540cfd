// Finds out whether the answers to an export without a window carry dates and, if not, what can be proved about their span.

import { fetchBreakdown } from "../api/breakdown.ts";
import { addDays, type Window } from "../usage/day.ts";
import { METRICS } from "../usage/metrics.ts";
import { type NormalisedSlice, normalise } from "../usage/normalise.ts";
import type { ExportJob } from "../usage/plan.ts";
import type { Series } from "../usage/series.ts";
import { type ProvenSpan, provenSpan, type SnapshotStep, type Undated } from "../usage/undated.ts";
import type { Finding, Probe } from "./probe.ts";

type Verdict = Omit<Finding, "what">;

type Proof = { readonly span: ProvenSpan; readonly by: string };

/** `jobs` are exports without a window; `total` is the project's series of all usage. */
export async function probeUndated(
  probe: Probe,
  total: Series,
  jobs: readonly ExportJob[],
  steps: readonly SnapshotStep[],
): Promise<Verdict> {
  const declared = jobs.map(({ undated }) => undated).find((undated) => undated !== "snapshot");
  const answer = await read(probe, total, undefined);
  if (!answer.some(({ undated }) => undated)) {
    return declared === undefined
      ? { state: "ok", text: "the answers name their days" }
      : { state: "warn", text: `the answers name their days, so "undated": "${declared}" has no effect` };
  }
  if (rowsOf(answer) === 0)
    return { state: "ok", text: "no usage, so it can't be told whether the answers carry dates" };
  const proof = (await provenByWindow(probe, total, answer)) ?? provenBySteps(steps);
  return declared === undefined ? undeclared(proof) : checked(declared, proof);
}

const APART =
  "the answers carry no date: they are snapshots in bi.usage_snapshot, and in no usage view, total or report";

const HOW_TO_PROVE =
  "of which span they are is not proved yet: let the export run several times a day for some days, and check again";

function undeclared(proof: Proof | undefined): Verdict {
  if (!proof) return { state: "warn", text: `${APART}; ${HOW_TO_PROVE}` };
  if (proof.span === "running-total") return { state: "warn", text: `${APART}; ${proof.by}` };
  const may = `the configuration may say ${declaration(proof.span)}`;
  return { state: "warn", text: `${APART}; ${proof.by}, so ${may}` };
}

function checked(declared: Undated, proof: Proof | undefined): Verdict {
  const said = `"undated": "${declared}" is configured`;
  if (!proof) return { state: "fail", text: `${said}, and the answers carry no date; ${HOW_TO_PROVE}, without it` };
  if (proof.span === declared) return { state: "ok", text: `the answers carry no date; ${proof.by}, as ${said}` };
  const instead = proof.span === "running-total" ? "remove it" : `it is ${declaration(proof.span)}`;
  return { state: "fail", text: `${said}, and ${proof.by}: ${instead}` };
}

function declaration(span: "day" | "day-before"): string {
  return span === "day"
    ? '"undated": "day", which stores them under the day of the run (what is used after it is missing, so run late in the UTC day)'
    : '"undated": "day-before", which stores them under the day before the run ("undated": "day" is the day of the run itself)';
}

const BY_STEPS: Readonly<Record<ProvenSpan, string>> = {
  "running-total": "they grew within a day and never fell, as a running total does, which is no usage of a day",
  day: "they grew within each day and fell by more than half at every midnight (UTC): they count from midnight on",
  "day-before": "they stayed the same within each day, and fell from day to day as only the usage of a day does",
};

function provenBySteps(steps: readonly SnapshotStep[]): Proof | undefined {
  const span = provenSpan(steps);
  return span && { span, by: BY_STEPS[span] };
}

/**
 * A service may honour a window without naming it. Then the answer without a window equals the answer for one day, and differs
 * from that for a longer window.
 */
async function provenByWindow(
  probe: Probe,
  total: Series,
  answer: readonly NormalisedSlice[],
): Promise<Proof | undefined> {
  const yesterday = addDays(probe.today, -1);
  const before = addDays(yesterday, -1);
  const of = (start: string, end: string) => read(probe, total, { start, end });
  const [one, other, both] = [await of(yesterday, yesterday), await of(before, before), await of(before, yesterday)];
  const [a, b, sum] = [amountOf(one), amountOf(other), amountOf(both)];
  if (a <= 0 || b <= 0 || Math.abs(a + b - sum) > 1e-9 * sum) return undefined;
  const by = (day: string) =>
    `asked for one day and for two, the service honours the window; its answer to none is ${day}`;
  if (isSame(answer, one)) return { span: "day-before", by: by("yesterday's usage") };
  const today = await of(probe.today, probe.today);
  return isSame(answer, today) ? { span: "day", by: by("today's usage up to now") } : undefined;
}

/** The days of the answer are ignored. */
async function read(probe: Probe, series: Series, window: Window | undefined): Promise<NormalisedSlice[]> {
  const { service, today, signal } = probe;
  const dialect = await probe.dialects.of({ series, window });
  const answer = await probe.use((key) => fetchBreakdown(service, { series, window }, key, signal, { dialect }));
  return normalise({ series, window: undefined }, answer, today);
}

function rowsOf(answer: readonly NormalisedSlice[]): number {
  return answer.reduce((sum, { rows }) => sum + rows.length, 0);
}

const REQUESTS = METRICS.indexOf("requests");
const HOURS = METRICS.indexOf("hours");

/** A sum of doubles, precise enough for a comparison. */
function amountOf(answer: readonly NormalisedSlice[]): number {
  const rows = answer.flatMap((slice) => slice.rows);
  return rows.reduce((sum, { metrics: { values } }) => sum + Number(values[REQUESTS] ?? values[HOURS] ?? 0), 0);
}

function isSame(a: readonly NormalisedSlice[], b: readonly NormalisedSlice[]): boolean {
  const numbers = (answer: readonly NormalisedSlice[]) =>
    JSON.stringify(answer.flatMap(({ rows }) => rows.map(({ metrics }) => metrics)));
  return numbers(a) === numbers(b);
}
