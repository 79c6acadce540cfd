// How many calls a run of an export makes, how long they take at the rates of the installation and of keys, and what would fit into a given
// time. Pure.

import { dayCount, type Window } from "./days.ts";
import { type ExportJob, REQUEST_DAYS_MAX, seriesOf } from "./plan.ts";
import { filterKey, type Grouping, NO_CONDITIONS, type Project, type Series } from "./series.ts";

export type Workload = {
  /** Breakdowns, of usage or of billing. */
  readonly requests: number;
  /** Calls beside them: each project's list of keys and balances, and the totals that filtered answers are compared with. */
  readonly otherCalls: number;
  readonly slices: number;
};

/** Of a run; with `range`, of a backfill of all its days. Values of fan-outs count as far as they are in `job.seen`. */
export function workloadOf(job: ExportJob, range?: Window, series: readonly Series[] = seriesOf(job)): Workload {
  const days = range ? dayCount(range) : daysOfRun(job);
  const stretches = Math.ceil(days / REQUEST_DAYS_MAX);
  const projects = new Set(series.map(({ project }) => project.id)).size;
  const isCompared = job.checkFeatures !== "off" && series.some(({ filter }) => filterKey(filter) !== NO_CONDITIONS);
  return {
    requests: series.length * stretches,
    otherCalls: projects * ((job.source === "billing" ? 2 : 1) + (isCompared ? stretches : 0)),
    slices: series.length * days,
  };
}

/** Without a window a run asks once, for one day as far as anybody knows. */
function daysOfRun({ window }: Pick<ExportJob, "window">): number {
  return window ? window.days + (window.today ? 1 : 0) : 1;
}

export function callsOf({ requests, otherCalls }: Workload): number {
  return requests + otherCalls;
}

/** A key with limits of its own. */
export type LimitedKey = {
  readonly name: string;
  readonly requestsPerSecond?: number;
  readonly maxConcurrent?: number;
};

/** How fast calls may be made: all together, and with the keys that have limits of their own. */
export type Pace = {
  readonly requestsPerSecond: number;
  readonly limitOf: (project: Project) => LimitedKey | undefined;
};

/** Calls, and how many of them are made with each key that has limits. By the key's name. */
export type Load = { readonly calls: number; readonly ofKeys: ReadonlyMap<string, KeyLoad> };

type KeyLoad = { readonly key: LimitedKey; readonly calls: number };

export function loadOf(
  job: ExportJob,
  { limitOf }: Pace,
  range?: Window,
  series: readonly Series[] = seriesOf(job),
): Load {
  const byKey = Map.groupBy(series, ({ project }) => limitOf(project)?.name);
  const ofKeys = [...byKey.values()].flatMap((own) => {
    const key = own[0] && limitOf(own[0].project);
    return key ? [[key.name, { key, calls: callsOf(workloadOf(job, range, own)) }] as const] : [];
  });
  return { calls: callsOf(workloadOf(job, range, series)), ofKeys: new Map(ofKeys) };
}

/** Of requests alone, without other calls. */
export function loadOfRequests(requests: readonly { readonly series: Series }[], { limitOf }: Pace): Load {
  const byKey = Map.groupBy(requests, ({ series }) => limitOf(series.project)?.name);
  const ofKeys = [...byKey.values()].flatMap((own) => {
    const key = own[0] && limitOf(own[0].series.project);
    return key ? [[key.name, { key, calls: own.length }] as const] : [];
  });
  return { calls: requests.length, ofKeys: new Map(ofKeys) };
}

/** Each load as often as it says; parts of a call count as one. */
export function sumOfLoads(loads: readonly { readonly load: Load; readonly times: number }[]): Load {
  const ofKeys = new Map<string, KeyLoad>();
  for (const { load, times } of loads) {
    for (const [name, { key, calls }] of load.ofKeys) {
      ofKeys.set(name, { key, calls: (ofKeys.get(name)?.calls ?? 0) + calls * times });
    }
  }
  const whole = [...ofKeys].map(([name, { key, calls }]) => [name, { key, calls: Math.ceil(calls) }] as const);
  return {
    calls: Math.ceil(loads.reduce((sum, { load, times }) => sum + load.calls * times, 0)),
    ofKeys: new Map(whole),
  };
}

export type SlowKey = { readonly key: string; readonly calls: number; readonly requestsPerSecond: number };

export type Duration = {
  readonly seconds: number;
  /** The key whose calls take longer at its own rate than all calls together at the installation's. */
  readonly slowestKey?: SlowKey;
};

/** At the least: a service that answers slowly takes longer. */
export function durationOf(load: Load, { requestsPerSecond }: Pace): Duration {
  let longest = load.calls / requestsPerSecond;
  let slowestKey: SlowKey | undefined;
  for (const one of ratedKeys(load)) {
    const seconds = one.calls / one.requestsPerSecond;
    if (seconds > longest) [longest, slowestKey] = [seconds, one];
  }
  return { seconds: Math.ceil(longest), ...(slowestKey && { slowestKey }) };
}

function ratedKeys({ ofKeys }: Load): SlowKey[] {
  return [...ofKeys.values()].flatMap(({ key: { name, requestsPerSecond }, calls }) =>
    requestsPerSecond === undefined ? [] : [{ key: name, calls, requestsPerSecond }],
  );
}

export type CappedKey = { readonly key: string; readonly maxConcurrent: number; readonly answerSeconds: number };

/** The key whose answers must be the quickest if so few calls at once are to end in this time; undefined if no key has a cap. */
export function tightestCap({ ofKeys }: Load, seconds: number): CappedKey | undefined {
  const capped = [...ofKeys.values()].flatMap(({ key: { name, maxConcurrent }, calls }) =>
    maxConcurrent === undefined || calls === 0
      ? []
      : [{ key: name, maxConcurrent, answerSeconds: (maxConcurrent * seconds) / calls }],
  );
  return tightest(capped);
}

export function tightest(capped: readonly CappedKey[]): CappedKey | undefined {
  return capped.toSorted((a, b) => a.answerSeconds - b.answerSeconds)[0];
}

/** What would make a run end in time; each by itself is enough. */
export type Fit = {
  /** Of the installation. Left out if only keys are too slow. */
  readonly requestsPerSecond?: number;
  /** The keys that are too slow, the slowest first, and a rate at which each of them ends in time. It is needed as well as the installation's. */
  readonly ofKeys?: { readonly keys: readonly string[]; readonly requestsPerSecond: number };
  /** The longest shorter window that fits. Only what is above 31 days costs further requests. */
  readonly windowDays?: number;
  /** As many of the job's groupings as fit, the most useful ones first. */
  readonly groupings?: readonly Grouping[];
};

const MOST_USEFUL: readonly Grouping[] = ["none", "model"];

export function fitInto(job: ExportJob, seconds: number, pace: Pace): Fit {
  const fits = (part: Partial<ExportJob>) => durationOf(loadOf({ ...job, ...part }, pace), pace).seconds <= seconds;
  const { window } = job;
  const today = window?.today ? 1 : 0;
  const stretches = window ? Math.ceil(daysOfRun(job) / REQUEST_DAYS_MAX) : 1;
  const shorter = Array.from({ length: stretches - 1 }, (_, i) => (stretches - 1 - i) * REQUEST_DAYS_MAX - today);
  const windowDays = window && shorter.find((days) => fits({ window: { ...window, days } }));
  const ranked = [
    ...MOST_USEFUL.filter((one) => job.groupings.includes(one)),
    ...job.groupings.filter((one) => !MOST_USEFUL.includes(one)),
  ];
  const fewer = ranked.map((_, i) => ranked.slice(0, ranked.length - 1 - i)).filter(({ length }) => length > 0);
  const groupings = fewer.find((some) => fits({ groupings: some }));
  const load = loadOf(job, pace);
  const rateFor = (calls: number) => Math.ceil((calls / seconds) * 10) / 10;
  const late = ratedKeys(load)
    .filter((one) => one.calls / one.requestsPerSecond > seconds)
    .sort((a, b) => b.calls / b.requestsPerSecond - a.calls / a.requestsPerSecond);
  return {
    ...(load.calls / pace.requestsPerSecond > seconds && { requestsPerSecond: rateFor(load.calls) }),
    ...(late.length > 0 && {
      ofKeys: {
        keys: late.map(({ key }) => key),
        requestsPerSecond: rateFor(late.reduce((most, { calls }) => Math.max(most, calls), 0)),
      },
    }),
    ...(windowDays !== undefined && { windowDays }),
    ...(groupings && { groupings }),
  };
}
