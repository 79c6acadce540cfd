// The command `plan`: how many requests the exports make, how long they take at the configured rates, and what a backfill would take.
// It calls nothing and stores nothing.

import { type App, readConfig, withDatabase } from "../app.ts";
import type { Config } from "../config/config.ts";
import { limitsOfProjects } from "../config/key-limits.ts";
import { AppError } from "../errors.ts";
import { withKnownProjects } from "../jobs/discover.ts";
import { withSeenValues } from "../jobs/seen-values.ts";
import { counted, durationText, instantText, windowText } from "../report/format.ts";
import { type Night, type NightPlan, planNights } from "../schedule/nights.ts";
import { DAY_SECONDS, type Day, dayOf, type Window } from "../usage/days.ts";
import {
  callsOf,
  type Duration,
  durationOf,
  type Fit,
  loadOf,
  type Pace,
  sumOfLoads,
  type Workload,
  workloadOf,
} from "../usage/workload.ts";
import { writeAnswer } from "./output.ts";
import { chooseBackfill } from "./selection.ts";

export type PlanOptions = {
  readonly backfill?: boolean;
  readonly from?: Day;
  readonly to?: Day;
  readonly json?: boolean;
};

type BackfillCost = Window & Workload & Duration;

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
  const plan: Plan = {
    ...planNights(config.exports, paceOf(config), new Date()),
    maxConcurrent: config.service.maxConcurrent,
    ...(range && { backfill: backfillCost(config, range) }),
  };
  writeAnswer(app, options, plan, planText);
  return 0;
}

export function paceOf(config: Config): Pace {
  return { requestsPerSecond: config.service.requestsPerSecond, limitOf: limitsOfProjects(config) };
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
  const pace = paceOf(config);
  const parts = jobs.map(({ job, series }) => workloadOf(job, range, series));
  const load = sumOfLoads(jobs.map(({ job, series }) => ({ load: loadOf(job, pace, range, series), times: 1 })));
  const sum = (count: keyof Workload) => parts.reduce((total, part) => total + part[count], 0);
  const workload = { requests: sum("requests"), otherCalls: sum("otherCalls"), slices: sum("slices") };
  return { ...range, ...workload, ...durationOf(load, pace) };
}

function planText(plan: Plan): string {
  const { exports, requestsPerSecond, callsPerDay, backfill } = plan;
  const lines = [
    ...exports.flatMap(nightLines),
    `all exports: ${counted(callsPerDay, "call")} a day, which take ${rateText(dayDuration(plan), requestsPerSecond)}${plan.secondsPerDay > DAY_SECONDS ? ": more than a day has" : ""}`,
    ...(backfill
      ? [
          `backfill of ${windowText({ start: backfill.start, end: backfill.end })}: ${workloadText(backfill)}: ${durationText(backfill.seconds)}${keyText(backfill)}, if no day is stored yet; backfill --dry-run counts what is missing`,
        ]
      : []),
    capText(plan),
  ];
  return `${lines.join("\n")}\n`;
}

function dayDuration({ secondsPerDay: seconds, slowestKeyPerDay: slowestKey }: NightPlan): Duration {
  return { seconds, ...(slowestKey && { slowestKey }) };
}

/** The time, and the rate that it comes from. */
export function rateText(duration: Duration, requestsPerSecond: number): string {
  return `${durationText(duration.seconds)}${keyText(duration) || ` at ${requestsPerSecond} a second`}`;
}

function keyText({ slowestKey }: Duration): string {
  if (!slowestKey) return "";
  const { key, calls, requestsPerSecond } = slowestKey;
  return ` because of the key of ${key} (${counted(calls, "call")} at ${requestsPerSecond} a second)`;
}

/** The limit of calls at once that needs the quickest answers. */
function capText(plan: Plan): string {
  const { maxConcurrent, requestsPerSecond, tightestCap } = plan;
  const durations = [
    ...plan.exports.map((night) => ({ ...night, calls: callsOf(night) })),
    { ...dayDuration(plan), calls: plan.callsPerDay },
    ...(plan.backfill ? [{ ...plan.backfill, calls: callsOf(plan.backfill) }] : []),
  ];
  // Where a key is the slowest, calls with the others have more time than the installation's rate gives them.
  const secondsPerCall = durations.map(({ slowestKey, seconds, calls }) =>
    slowestKey ? seconds / calls : 1 / requestsPerSecond,
  );
  const ofAll = maxConcurrent * Math.min(...secondsPerCall);
  const ofKey = tightestCap && tightestCap.answerSeconds < ofAll ? tightestCap : undefined;
  const calls = ofKey
    ? `${counted(ofKey.maxConcurrent, "call")} with the key of ${ofKey.key}`
    : counted(maxConcurrent, "call");
  const verb = (ofKey ?? { maxConcurrent }).maxConcurrent === 1 ? "is" : "are";
  return `This holds while an answer takes less than ${Number((ofKey?.answerSeconds ?? ofAll).toPrecision(2))} s on average: at most ${calls} ${verb} made at once (maxConcurrent).`;
}

function nightLines({ job, startsAt, endsAt, fit, secondsBetween, ...night }: Night): string[] {
  const times = startsAt && endsAt ? `, from ${instantText(startsAt)} to ${instantText(endsAt)}` : "";
  return [
    `${job}: ${workloadText(night)}: ${durationText(night.seconds)}${keyText(night)}${times}`,
    ...(fit && secondsBetween !== undefined ? [`  ${tooLongText(secondsBetween, fit)}`] : []),
  ];
}

function workloadText(workload: Workload): string {
  const { requests, otherCalls, slices } = workload;
  return `${counted(slices, "slice")} in ${counted(requests, "request")} and ${counted(otherCalls, "other call")}`;
}

function tooLongText(secondsBetween: number, { requestsPerSecond, ofKeys, windowDays, groupings }: Fit): string {
  const rates = [
    ...(requestsPerSecond === undefined ? [] : [`${requestsPerSecond}`]),
    ...(ofKeys ? [`${ofKeys.requestsPerSecond} for ${keysText(ofKeys.keys)}`] : []),
  ];
  const choices = [
    `"requestsPerSecond": ${rates.join(" and ")}`,
    ...(windowDays === undefined ? [] : [`"window": { "days": ${windowDays} }`]),
    ...(groupings ? [`"groupings": ${JSON.stringify(groupings)}`] : []),
    "a schedule that runs less often",
  ];
  return `does not end before the next run begins, after ${durationText(secondsBetween)}; any of these would do: ${choices.join(", or ")}`;
}

function keysText([first, ...others]: readonly string[]): string {
  return `the key of ${first}${others.length > 0 ? ` and ${counted(others.length, "other key")}` : ""}`;
}

export type TooLong = { readonly what: string; readonly text: string };

/** For `check`: the exports whose runs do not end before the next one begins, and all exports together if a day is too short for them. */
export function exportsTooLong(config: Config, now: Date): readonly TooLong[] {
  const { requestsPerSecond } = config.service;
  const plan = planNights(config.exports, paceOf(config), now);
  const each = plan.exports.flatMap(({ job, fit, secondsBetween, ...night }) =>
    fit && secondsBetween !== undefined
      ? [
          {
            what: `export ${job}`,
            text: `a run makes ${counted(callsOf(night), "call")}, takes ${rateText(night, requestsPerSecond)} and ${tooLongText(secondsBetween, fit)}`,
          },
        ]
      : [],
  );
  if (each.length > 0 || plan.secondsPerDay <= DAY_SECONDS) return each;
  const text = `together they make ${counted(plan.callsPerDay, "call")} a day, which take ${rateText(dayDuration(plan), requestsPerSecond)}; see: usage-export plan`;
  return [{ what: "exports", text }];
}
