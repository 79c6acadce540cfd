// What a backfill answers: what it would read, what it read, and how its range stands then.

import { describe } from "../usage/export-request.ts";
import { sliceCount, slicesOf } from "../usage/plan.ts";
import type { BackfillMode, JobPlan, RangeState } from "../usage/plan-backfill.ts";
import type { Enqueued } from "../worker/enqueue.ts";
import type { BackfillOptions } from "./backfill-choice.ts";
import { type JobResult, resultJson, resultText } from "./export-answer.ts";

export type Outcome = {
  readonly options: BackfillOptions;
  readonly configPath: string;
  /** One for each job that had something to read. */
  readonly results: readonly JobResult[];
  readonly state: RangeState;
  /** A signal ended the command before everything was read. */
  readonly isStopped: boolean;
};

export function outcomeText(outcome: Outcome): string {
  const { options, results, state, isStopped } = outcome;
  const { complete, suspect, failed, missing } = state.counts;
  const lines = [
    ...results.map((one) => resultText(one).trimEnd()),
    ...(isStopped ? [STOPPED] : results.length === 0 ? [NOTHING[options.only]] : []),
    `${options.from} to ${options.to}: ${state.slices} slices, ${complete} complete, ${suspect} suspect, ${failed} failed, ${missing} missing`,
    ...commandsLeft(outcome).map(({ status, command }) => `  to read what is ${status}: ${command}`),
  ];
  return `${lines.join("\n")}\n`;
}

const STOPPED = "stopped: what was read is stored, and to go on reads only what is not there";

const NOTHING: Readonly<Record<BackfillMode, string>> = {
  missing: "nothing to do: no slice is missing",
  failed: "nothing to do: no slice has failed",
  all: "nothing to do",
};

export function outcomeJson(outcome: Outcome): object {
  const { options, results, state, isStopped } = outcome;
  const { from, to, only } = options;
  const range = { slices: state.slices, ...state.counts };
  return { from, to, only, stopped: isStopped, jobs: results.map(resultJson), range, next: commandsLeft(outcome) };
}

type CommandLeft = { readonly status: string; readonly command: string };

/** For the same selection, the command lines that read what is left. */
function commandsLeft({ options, configPath, state }: Outcome): CommandLeft[] {
  const { job, project, grouping, filter } = options;
  const config = configPath === DEFAULT_CONFIG ? undefined : [configPath];
  const same = Object.entries({ job, project, grouping, filter, config }).flatMap(([name, values]) =>
    values ? [`--${name}`, ...values] : [],
  );
  return state.left.map(({ status, only, days: { start, end } }) => ({
    status,
    command: ["usage-export", "backfill", "--from", start, "--to", end, "--only", only, ...same].map(quoted).join(" "),
  }));
}

const DEFAULT_CONFIG = "jobs.config.json";

function quoted(word: string): string {
  return /^[\w./:@%+=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

export function planText(plans: readonly JobPlan[]): string {
  const requests = plans.flatMap(({ plan }) => plan.requests);
  const lines = requests.map((request) => {
    const { project, grouping, filter, start, end } = describe(request);
    const count = sliceCount(request);
    const days = start === end ? start : `${start} to ${end}`;
    return `${days} (${count} ${count === 1 ? "slice" : "slices"}): ${project} / ${grouping} / ${filter}`;
  });
  lines.push(`would read ${slicesOf(requests)} slices in ${requests.length} requests`);
  return `${lines.join("\n")}\n`;
}

export function planJson(plans: readonly JobPlan[]): object {
  return plans.map(({ job, plan: { requests } }) => ({
    job: job.name,
    slices: slicesOf(requests),
    requests: requests.map(describe),
  }));
}

/** A run has no requests where others that wait already ask for the same days. */
export function enqueuedText(enqueued: readonly Enqueued[]): string {
  return enqueued
    .map(({ job, runId, requests }) =>
      requests > 0
        ? `${job}: ${requests} requests handed to the workers, as run ${runId}\n`
        : `${job}: nothing to hand over: the workers have all of it already\n`,
    )
    .join("");
}
