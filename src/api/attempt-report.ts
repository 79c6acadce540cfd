// Tells of each attempt how it went and how long it took, for whoever counts them. Never the path: it holds ids.

import { type ErrorCode, errorCode } from "../errors.ts";
import type { Outcome } from "./answer.ts";
import type { Attempt } from "./attempts.ts";
import type { ServiceCall } from "./service.ts";

export type AttemptReport = {
  readonly operation: string;
  /** How the answer ended, or its absence. Whether it is what was asked for is seen later, by who reads it. */
  readonly result: "ok" | ErrorCode | "internal";
  /** The connection and the whole answer, without the wait for a turn. */
  readonly seconds: number;
  /** Of this call, from 1: a higher one is a retry. */
  readonly number: number;
};

export type OnAttempt = (report: AttemptReport) => void;

/** By what follows the version and the project in the path. */
const OPERATIONS: Readonly<Record<string, string>> = {
  "GET projects": "projects",
  "GET auth/token": "token",
  "GET usage/breakdown": "breakdown",
  "GET usage/fields": "fields",
  "GET keys": "list_keys",
  "POST keys": "create_key",
  "GET keys/{id}": "read_key",
  "DELETE keys/{id}": "delete_key",
};

export function operationOf({ method, path }: Pick<ServiceCall, "method" | "path">): string {
  const [, projects, , ...inProject] = path;
  const [kind, id] = projects === "projects" && inProject.length > 0 ? inProject : path.slice(1);
  const named = kind === "keys" && id !== undefined ? "{id}" : id;
  return OPERATIONS[`${method} ${[kind, named].filter((part) => part !== undefined).join("/")}`] ?? "other";
}

/** The same attempt, told about. */
export function reported(
  attempt: Attempt,
  call: ServiceCall,
  signal: AbortSignal,
  now: () => number,
  tell: OnAttempt,
): Attempt {
  const operation = operationOf(call);
  let number = 0;
  return async () => {
    number++;
    const startedMs = now();
    const end = (result: AttemptReport["result"]) =>
      tell({ operation, result, seconds: (now() - startedMs) / 1000, number });
    let outcome: Outcome;
    try {
      outcome = await attempt();
    } catch (error) {
      end(signal.aborted ? "stopped" : errorCode(error));
      throw error;
    }
    end(outcome.ok ? "ok" : outcome.failure.error.code);
    return outcome;
  };
}
