// Remembers which keys the service refused, so that a refused key is not tried with every call of a run.

import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { refusesKey } from "./failure.ts";
import { settled } from "./wait.ts";

/** What a refusal can be about. */
export type Use = {
  readonly key: Secret;
  /** Where the key is let in, or not: a project. */
  readonly project: string;
  /** What it may do there, or not. */
  readonly operation: string;
};

export type Refusals = {
  /**
   * Runs a call, and remembers if it is refused: a 401 for the key, a 403 for this operation only, as the key may well
   * do others. The first call of a key in a project goes alone, and so does the first of each operation; the others
   * wait for what becomes of it. Else all that run at once would be refused at once.
   */
  readonly guard: <T>(use: Use, signal: AbortSignal, call: () => Promise<T>) => Promise<T>;
  /** Throws if this use is known to be refused. */
  readonly check: (use: Use) => void;
  /** Of one key, or of all. */
  readonly forget: (key?: Secret) => void;
};

type FirstCall = { readonly use: Use; readonly over: Promise<unknown> };

export function openRefusals(): Refusals {
  let refused: { readonly use: Use; readonly error: AppError }[] = [];
  /** By project. */
  const firsts = new Map<string, FirstCall[]>();

  function refusalOf(use: Use): AppError | undefined {
    const isSame = (other: Use) => other.key.equals(use.key) && other.operation === use.operation;
    return refused.find(({ use: other, error }) => isSame(other) || (refusesKey(error) && other.key.equals(use.key)))
      ?.error;
  }

  function check(use: Use): void {
    const known = refusalOf(use);
    if (known === undefined) return;
    const { code, message, details } = known;
    throw new AppError(code, `not called again after a refusal: ${message}`, { details });
  }

  async function run<T>(use: Use, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (error) {
      if (error instanceof AppError && error.code === "unauthorized" && refusalOf(use) === undefined) {
        refused.push({ use, error });
      }
      throw error;
    }
  }

  async function runAfter<T>(
    firstCalls: readonly (FirstCall | undefined)[],
    use: Use,
    signal: AbortSignal,
    call: () => Promise<T>,
  ): Promise<T> {
    for (const first of firstCalls) {
      if (first !== undefined) await settled(first.over, signal);
    }
    check(use);
    return await run(use, call);
  }

  return {
    check,
    async guard(use, signal, call) {
      const ofProject = firsts.get(use.project) ?? [];
      const ofKey = ofProject.filter((first) => first.use.key.equals(use.key));
      const ofOperation = ofKey.find((first) => first.use.operation === use.operation);
      const running = runAfter([ofKey[0], ofOperation], use, signal, call);
      // Only that it is over is kept: an answer can be large, and this is kept as long as the service is open.
      const over = running.then(noop, noop);
      if (ofOperation === undefined) firsts.set(use.project, [...ofProject, { use, over }]);
      return await running;
    },
    forget(key) {
      const isOther = ({ use }: { use: Use }) => key !== undefined && !use.key.equals(key);
      refused = refused.filter(isOther);
      for (const [project, ofProject] of firsts) firsts.set(project, ofProject.filter(isOther));
    },
  };
}

function noop(): void {}
