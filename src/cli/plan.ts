// The command `plan`: how many requests the exports make, how long they take at the configured rate, and what a backfill would take.
// It calls nothing and stores nothing.

import { type App, readConfig, withDatabase } from "../app.ts";
import type { Config } from "../config/config.ts";
import { AppError } from "../errors.ts";
import { withKnownProjects } from "../jobs/discover.ts";
import { withSeenValues } from "../jobs/seen-values.ts";
import { counted, durationText, instantText, windowText } from "../report/format.ts";
import { type Night, type NightPlan, planNights } from "../schedule/nights.ts";
import { DAY_SECONDS, type Day, dayOf, type Window } from "../usage/days.ts";
import { callsOf, type Fit, secondsFor, type Workload, workloadOf } from "../usage/workload.ts";
import { writeAnswer } from "./output.ts";
import { chooseBackfill } from "./selection.ts";

export type PlanOptions = {
  readonly backfill?: boolean;
  readonly from?: Day;
  readonly to?: Day;
  readonly json?: boolean;
};

type BackfillCost = Window & Workload & { readonly seconds: number };

type Plan = NightPlan & { readonly maxConcurrent: number; readonly backfill?: BackfillCost };

export async function runPlan(app: App, options: PlanOptions): Promise<number> {
  const configured = await readConfig(app);
  const range = rangeOf(options);
  // Only discovered projects and the values of fan-outs are in the database: without either it is not needed.
  const isFannedOut = configured.exports.some(({ fanOuts = [] }) => fanOuts.length > 0);
  const config =
    isFannedOut || configured.discovery
      ? await withDatabase(app, async (db) => withSeenValues(await withKnownProjects(configured, db), db, range))
      : configured;
  const { requestsPerSecond, maxConcurrent } = config.service;
  const plan: Plan = {
    ...planNights(config.exports, requestsPerSecond, new Date()),
    maxConcurrent,
    ...(range && { backfill: backfillCost(config, range) }),
  };
  writeAnswer(app, options, plan, planText);
  return 0;
}

function rangeOf({ backfill, from, to }: PlanOptions): Window | undefined {
  if (!backfill && from === undefined && to === undefined) return undefined;
  if (!backfill) throw new AppError("config", "--from and --to are the days of a backfill: add --backfill");
  if (from !== undefined && to !== undefined) return { start: from, end: to };
  throw new AppError("config", "--backfill: expected --from and --to, the first and the last day");
}

/** Of all days of the range, whatever is stored. A series that several exports read is read once. */
function backfillCost(config: Config, range: Window): BackfillCost {
  const options = { from: range.start, to: range.end, only: "all" } as const;
  const { jobs } = chooseBackfill(config, options, dayOf(new Date()));
  const parts = jobs.map(({ job, series }) => workloadOf(job, range, series));
  const sum = (count: keyof Workload) => parts.reduce((total, part) => total + part[count], 0);
  const workload = { requests: sum("requests"), otherCalls: sum("otherCalls"), slices: sum("slices") };
  return { ...range, ...workload, seconds: secondsFor(workload, config.service.requestsPerSecond) };
}

function planText({ exports, requestsPerSecond, maxConcurrent, callsPerDay, secondsPerDay, backfill }: Plan): string {
  const lines = [
    ...exports.flatMap(nightLines),
    `all exports: ${counted(callsPerDay, "call")} a day, which take ${durationText(secondsPerDay)} at ${requestsPerSecond} a second${secondsPerDay > DAY_SECONDS ? ": more than a day has" : ""}`,
    ...(backfill
      ? [
          `backfill of ${windowText({ start: backfill.start, end: backfill.end })}: ${workloadText(backfill)}: ${durationText(backfill.seconds)}, if no day is stored yet; backfill --dry-run counts what is missing`,
        ]
      : []),
    `This holds while an answer takes less than ${answerSeconds(maxConcurrent, requestsPerSecond)} s on average: at most ${maxConcurrent} calls are made at once (maxConcurrent).`,
  ];
  return `${lines.join("\n")}\n`;
}

function answerSeconds(maxConcurrent: number, requestsPerSecond: number): string {
  return (maxConcurrent / requestsPerSecond).toPrecision(2);
}

function nightLines({ job, startsAt, endsAt, seconds, fit, secondsBetween, ...workload }: Night): string[] {
  const times = startsAt && endsAt ? `, from ${instantText(startsAt)} to ${instantText(endsAt)}` : "";
  return [
    `${job}: ${workloadText(workload)}: ${durationText(seconds)}${times}`,
    ...(fit && secondsBetween !== undefined ? [`  ${tooLongText(secondsBetween, fit)}`] : []),
  ];
}

function workloadText(workload: Workload): string {
  const { requests, otherCalls, slices } = workload;
  return `${counted(slices, "slice")} in ${counted(requests, "request")} and ${counted(otherCalls, "other call")}`;
}

function tooLongText(secondsBetween: number, { requestsPerSecond, windowDays, groupings }: Fit): string {
  const choices = [
    `"requestsPerSecond": ${requestsPerSecond}`,
    ...(windowDays === undefined ? [] : [`"window": { "days": ${windowDays} }`]),
    ...(groupings ? [`"groupings": ${JSON.stringify(groupings)}`] : []),
    "a schedule that runs less often",
  ];
  return `does not end before the next run begins, after ${durationText(secondsBetween)}; any of these would do: ${choices.join(", or ")}`;
}

export type TooLong = { readonly what: string; readonly text: string };

/** For `check`: the exports whose runs do not end before the next one begins, and all exports together if a day is too short for them. */
export function exportsTooLong(config: Config, now: Date): readonly TooLong[] {
  const { requestsPerSecond } = config.service;
  const { exports, secondsPerDay, callsPerDay } = planNights(config.exports, requestsPerSecond, now);
  const each = exports.flatMap(({ job, fit, secondsBetween, seconds, ...workload }) =>
    fit && secondsBetween !== undefined
      ? [
          {
            what: `export ${job}`,
            text: `a run makes ${counted(callsOf(workload), "call")}, takes ${durationText(seconds)} at ${requestsPerSecond} a second and ${tooLongText(secondsBetween, fit)}`,
          },
        ]
      : [],
  );
  if (each.length > 0 || secondsPerDay <= DAY_SECONDS) return each;
  const text = `together they make ${counted(callsPerDay, "call")} a day, which take ${durationText(secondsPerDay)} at ${requestsPerSecond} a second; see: usage-export plan`;
  return [{ what: "exports", text }];
}
