// One case of a sweep: what happens to one program of how many, and at which of its events. All of it is in the case's name.

import type { Fault } from "./arm.ts";
import { type FaultEvent, PASS } from "./gate.ts";
import type { Running } from "./lab.ts";

export type CasePlan = {
  readonly replicas: number;
  /** A kind of KINDS, with an SQLSTATE where it is `error`. */
  readonly kind: string;
  /** The number of the event, from 1. */
  readonly point: number;
};

export function nameOf({ replicas, kind, point }: CasePlan): string {
  return `${replicas} replicas, ${kind}, point ${point}`;
}

export function planOf(name: string): CasePlan {
  const [, replicas, kind = "", point] = /^(\d) replicas, (.*), point (\d+)$/.exec(name) ?? [];
  if (replicas === undefined) throw new Error(`no name of a case: ${name}`);
  return { replicas: Number(replicas), kind, point: Number(point) };
}

/** Whose name the program has that the fault happens to, and those of the programs beside it. */
export const REPLICAS = ["a", "b", "c"] as const;
export const VICTIM = REPLICAS[0];

const any = () => true;
export const ofDatabase = ({ peer }: FaultEvent) => peer === "database";
export const midAnswer = ({ peer, side }: FaultEvent) => peer === "service" && side === "back";

type Victim = Pick<Running, "program" | "database">;

/** How long the whole database is gone, where it is. */
export const AWAY_MS = 5_000;

/** Which events the fault can happen at, and what happens then. */
export function faultOf(kind: string, victim: () => Victim | undefined): Pick<Fault, "fits" | "act"> {
  const [verb, sqlstate = ""] = kind.split(" ");
  switch (verb) {
    case "kill":
      return {
        fits: any,
        act: () => {
          victim()?.program.kill("SIGKILL");
          return { kind: "cut" };
        },
      };
    case "stop":
      return {
        fits: any,
        act: () => {
          victim()?.program.kill("SIGSTOP");
          return PASS;
        },
      };
    case "cut":
      return { fits: any, act: () => ({ kind: "cut" }) };
    case "half":
      return { fits: midAnswer, act: () => ({ kind: "half" }) };
    case "hole":
      return { fits: any, act: () => ({ kind: "hole" }) };
    case "away":
      return {
        fits: ofDatabase,
        act: () => {
          const database = victim()?.database;
          database?.swallow();
          setTimeout(() => database?.mend(), AWAY_MS);
          return { kind: "hole" };
        },
      };
    case "error":
      return { fits: ofDatabase, act: () => ({ kind: "error", sqlstate }) };
    default:
      throw new Error(`no such fault: ${kind}`);
  }
}

/** Whoever was killed or stopped may have calls with the service that nobody counts any more. */
export function exemptOf(kind: string): ReadonlySet<string> {
  return new Set(kind === "kill" || kind === "stop" ? [VICTIM] : []);
}
