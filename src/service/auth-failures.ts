// Remembers which keys the service rejected, so that a rejected key is not sent again with every call of a run.

import { waitUntilSettled } from "../async.ts";
import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { isKeyRejected } from "./errors.ts";

/** What a key is used for, as far as a refusal depends on it. */
type KeyUse = {
  readonly key: Secret;
  readonly project: string;
  readonly operation: string;
};

export type AuthFailures = {
  /**
   * Runs a call, and remembers if it is refused: a 401 for the key, a 403 for this operation only, as the key may do others. The
   * first call of a key in a project runs alone, and so does the first of each operation; others wait for its outcome. Otherwise
   * all concurrent calls would be refused.
   */
  readonly guard: <T>(use: KeyUse, signal: AbortSignal, call: () => Promise<T>) => Promise<T>;
  /** Throws if this use is known to be refused. */
  readonly check: (use: KeyUse) => void;
  /** Of one key, or of all keys. */
  readonly forget: (key?: Secret) => void;
};

type FirstCall = { readonly use: KeyUse; readonly over: Promise<unknown> };

export function openAuthFailures(): AuthFailures {
  let refused: { readonly use: KeyUse; readonly error: AppError }[] = [];
  /** By project. */
  const firsts = new Map<string, FirstCall[]>();

  function refusalOf(use: KeyUse): AppError | undefined {
    const isSame = (other: KeyUse) => other.key.equals(use.key) && other.operation === use.operation;
    return refused.find(({ use: other, error }) => isSame(other) || (isKeyRejected(error) && other.key.equals(use.key)))
      ?.error;
  }

  function check(use: KeyUse): void {
    const known = refusalOf(use);
    if (known === undefined) return;
    const { code, message, details } = known;
    throw new AppError(code, `not called again after a refusal: ${message}`, { details });
  }

  async function runAfter<T>(
    firstCalls: readonly (FirstCall | undefined)[],
    use: KeyUse,
    signal: AbortSignal,
    call: () => Promise<T>,
  ): Promise<T> {
    for (const first of firstCalls) {
      if (first !== undefined) await waitUntilSettled(first.over, signal);
    }
    check(use);
    try {
      return await call();
    } catch (error) {
      if (error instanceof AppError && error.code === "unauthorized" && refusalOf(use) === undefined) {
        refused.push({ use, error });
      }
      throw error;
    }
  }

  return {
    check,
    async guard(use, signal, call) {
      const ofProject = firsts.get(use.project) ?? [];
      const ofKey = ofProject.filter((first) => first.use.key.equals(use.key));
      const ofOperation = ofKey.find((first) => first.use.operation === use.operation);
      const running = runAfter([ofKey[0], ofOperation], use, signal, call);
      // Without the answer, which can be large: this is kept as long as the service is open.
      const over = running.then(noop, noop);
      if (ofOperation === undefined) firsts.set(use.project, [...ofProject, { use, over }]);
      return await running;
    },
    forget(key) {
      const isOther = ({ use }: { use: KeyUse }) => key !== undefined && !use.key.equals(key);
      refused = refused.filter(isOther);
      for (const [project, ofProject] of firsts) firsts.set(project, ofProject.filter(isOther));
    },
  };
}

function noop(): void {}
