// One case of a sweep: which fault happens at which event of one program, and how many programs run. The case's name contains all of it.

import { type Action, type Fault, type FaultEvent, PASS } from "./fault-decision.ts";
import type { Running } from "./interrupt.ts";

type Victim = Pick<Running, "program" | "database"> | undefined;

/** Which events a fault can happen at, what the front does then, and what else happens to the victim. */
type KindOfFault = readonly [fits: Fault["fits"], action: Action, effect?: (victim: Victim) => void];

/** How long the database can't be reached in the fault "database away". */
export const AWAY_MS = 5_000;
/** Long enough for other programs to overtake. */
const DELAY_MS = 400;

const any = () => true;
const eventsOf =
  (peer: FaultEvent["peer"], side?: FaultEvent["side"]): Fault["fits"] =>
  (event) =>
    event.peer === peer && (side ?? event.side) === event.side;
const CUT: Action = { kind: "cut" };
const SILENCE: Action = { kind: "silence" };
const ERROR: Action = { kind: "error", sqlstate: "" };
const kill = (signal: "SIGKILL" | "SIGSTOP") => (victim: Victim) => victim?.program.kill(signal);
const takeDatabaseAway = (victim: Victim) => {
  victim?.database.silence();
  setTimeout(() => victim?.database.restore(), AWAY_MS);
};

const KINDS = {
  kill: [any, CUT, kill("SIGKILL")],
  "kill twice": [any, CUT, kill("SIGKILL")],
  "stop and continue": [any, PASS, kill("SIGSTOP")],
  cut: [any, CUT],
  "cut mid-answer": [eventsOf("service", "back"), { kind: "cut-halfway" }],
  delay: [any, { kind: "delay", ms: DELAY_MS }],
  "black hole": [any, SILENCE],
  "database away": [eventsOf("database"), SILENCE, takeDatabaseAway],
  "SQL error before": [eventsOf("database", "out"), ERROR],
  "SQL error after": [eventsOf("database", "back"), ERROR],
} satisfies Record<string, KindOfFault>;
export type Kind = keyof typeof KINDS;

export type CasePlan = {
  readonly replicas: number;
  readonly kind: Kind;
  /** The code of an SQL error. */
  readonly sqlstate?: string | undefined;
  /** The number of the event, from 1. */
  readonly point: number;
  /** The event at which the run that follows is killed too. */
  readonly secondPoint?: number | undefined;
};

export function nameOf({ replicas, kind, sqlstate, point, secondPoint }: CasePlan): string {
  const error = sqlstate === undefined ? "" : ` ${sqlstate}`;
  return `${replicas} replicas, ${kind}${error}, point ${point}${secondPoint === undefined ? "" : ` then ${secondPoint}`}`;
}

export function planOf(name: string): CasePlan {
  const parts = /^(\d) replicas, (.*?)(?: ([0-9A-Z]{5}))?, point (\d+)(?: then (\d+))?$/.exec(name) ?? [];
  const [, replicas, kind = "", sqlstate, point, second] = parts;
  if (!(kind in KINDS)) throw new Error(`not the name of a case: ${name}`);
  const secondPoint = second === undefined ? undefined : Number(second);
  return { replicas: Number(replicas), kind: kind as Kind, sqlstate, point: Number(point), secondPoint };
}

/** The names of the programs that run at the same time. The fault happens to the first one. */
export const REPLICAS = ["a", "b", "c"] as const;
export const VICTIM = REPLICAS[0];
/** The name of the run that follows while the victim is stopped, or before the recovery run. */
export const SECOND = "other";

/** Codes of each class that the program must distinguish: try again, give up one slice, give up everything. */
export const SQLSTATES = [
  ...["08006", "22021", "23505", "25006", "40001", "40P01", "53100"],
  ...["53200", "53300", "55P03", "57014", "57P01", "57P03", "58030"],
];

/** Which events the fault can happen at, and what happens then. */
export function faultOf({ kind, sqlstate }: Pick<CasePlan, "kind" | "sqlstate">, victim: () => Victim) {
  const [fits, action, effect]: KindOfFault = KINDS[kind];
  const act = (): Action => {
    effect?.(victim());
    return action.kind === "error" ? { ...action, sqlstate: sqlstate ?? "" } : action;
  };
  return { fits, act };
}

/** The programs that were killed or stopped: their slots go to others while the service may still work on their calls. */
export function exemptOf(kind: Kind): ReadonlySet<string> {
  if (kind === "kill" || kind === "stop and continue") return new Set([VICTIM]);
  return new Set(kind === "kill twice" ? [VICTIM, SECOND] : []);
}
