// One case of a sweep: which fault happens at which event of one program, and how many programs run. The case's name contains all of it.

import type { Fault } from "./arm.ts";
import { type FaultEvent, PASS } from "./fault-decision.ts";
import type { Running } from "./interrupt.ts";

const KINDS = [
  "kill",
  "kill twice",
  "stop and continue",
  "cut",
  "cut mid-answer",
  "delay",
  "black hole",
  "database away",
  "SQL error before",
  "SQL error after",
] as const;
export type Kind = (typeof KINDS)[number];

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
  const [, replicas, word, sqlstate, point, second] = parts;
  const kind = KINDS.find((each) => each === word);
  if (kind === undefined) throw new Error(`no name of a case: ${name}`);
  return {
    replicas: Number(replicas),
    kind,
    sqlstate,
    point: Number(point),
    secondPoint: second === undefined ? undefined : Number(second),
  };
}

/** The names of the programs that run at the same time. The fault happens to the first one. */
export const REPLICAS = ["a", "b", "c"] as const;
export const VICTIM = REPLICAS[0];

/** Codes of each class that the program must distinguish: try again, give up one slice, give up everything. */
export const SQLSTATES = [
  ...["08006", "22021", "23505", "25006", "40001", "40P01", "53100"],
  ...["53200", "53300", "55P03", "57014", "57P01", "57P03", "58030"],
];

const any = () => true;
const midAnswer = ({ peer, side }: FaultEvent) => peer === "service" && side === "back";
const ofDatabase = ({ peer }: FaultEvent) => peer === "database";
const statement = ({ peer, side }: FaultEvent) => peer === "database" && side === "out";
const executed = ({ peer, side }: FaultEvent) => peer === "database" && side === "back";

/** How long the database can't be reached in the fault "database away". */
export const AWAY_MS = 5_000;
/** Long enough for other programs to overtake. */
const DELAY_MS = 400;

type Victim = Pick<Running, "program" | "database">;

/** Which events the fault can happen at, and what happens then. */
export function faultOf(
  { kind, sqlstate = "" }: Pick<CasePlan, "kind" | "sqlstate">,
  victim: () => Victim | undefined,
): Pick<Fault, "fits" | "act"> {
  switch (kind) {
    case "kill":
    case "kill twice":
      return {
        fits: any,
        act: () => {
          victim()?.program.kill("SIGKILL");
          return { kind: "cut" };
        },
      };
    case "stop and continue":
      return {
        fits: any,
        act: () => {
          victim()?.program.kill("SIGSTOP");
          return PASS;
        },
      };
    case "cut":
      return { fits: any, act: () => ({ kind: "cut" }) };
    case "cut mid-answer":
      return { fits: midAnswer, act: () => ({ kind: "cut-halfway" }) };
    case "delay":
      return { fits: any, act: () => ({ kind: "delay", ms: DELAY_MS }) };
    case "black hole":
      return { fits: any, act: () => ({ kind: "silence" }) };
    case "database away":
      return {
        fits: ofDatabase,
        act: () => {
          const database = victim()?.database;
          database?.silence();
          setTimeout(() => database?.restore(), AWAY_MS);
          return { kind: "silence" };
        },
      };
    case "SQL error before":
      return { fits: statement, act: () => ({ kind: "error", sqlstate }) };
    case "SQL error after":
      return { fits: executed, act: () => ({ kind: "error", sqlstate }) };
  }
}

/** The programs that were killed or stopped: their slots go to others while the service may still work on their calls. */
export function exemptOf(kind: Kind): ReadonlySet<string> {
  if (kind === "kill" || kind === "stop and continue") return new Set([VICTIM]);
  return new Set(kind === "kill twice" ? [VICTIM, SECOND] : []);
}

/** The name of the run that follows while the victim is stopped, or before the recovery run. */
export const SECOND = "other";
