// Remembers which keys the service rejected, so that a rejected key is not sent again with every call of a run.

import { waitUntilSettled } from "../async.ts";
import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { isKeyRejected } from "./errors.ts";

/** The parts of a call that decide whether an earlier refusal applies to it. */
type KeyUse = {
  readonly key: Secret;
  readonly project: string;
  readonly operation: string;
};

export type AuthFailures = {
  /**
   * Runs a call, and remembers if it is refused. If the service rejects the key itself, no call with the key is made again; any other
   * refusal is remembered for this operation only, because the key may be allowed others. All calls of a key in a project wait for its
   * first call there, and all calls of an operation wait for the first call of that operation. Otherwise all concurrent calls would be
   * sent and refused.
   */
  readonly guard: <T>(use: KeyUse, signal: AbortSignal, call: () => Promise<T>) => Promise<T>;
  /** Throws if this use is known to be refused. */
  readonly check: (use: KeyUse) => void;
  /** Forgets the refusals of one key, or of all keys. */
  readonly forget: (key?: Secret) => void;
};

/** `running` is undefined once the call has ended. */
type FirstCall = { readonly use: KeyUse; running: Promise<unknown> | undefined };

export function openAuthFailures(): AuthFailures {
  let refused: { readonly use: KeyUse; readonly error: AppError }[] = [];
  /** By project. */
  const firstCallsOf = new Map<string, FirstCall[]>();

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
      if (first?.running !== undefined) await waitUntilSettled(first.running, signal);
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
      const ofProject = firstCallsOf.get(use.project) ?? [];
      const ofKey = ofProject.filter((first) => first.use.key.equals(use.key));
      const ofOperation = ofKey.find((first) => first.use.operation === use.operation);
      const running = runAfter([ofKey[0], ofOperation], use, signal, call);
      if (ofOperation === undefined) {
        const first: FirstCall = { use, running };
        const end = () => {
          first.running = undefined;
        };
        running.then(end, end);
        firstCallsOf.set(use.project, [...ofProject, first]);
      }
      return await running;
    },
    forget(key) {
      const isOfOtherKey = ({ use }: { use: KeyUse }) => key !== undefined && !use.key.equals(key);
      refused = refused.filter(isOfOtherKey);
      for (const [project, ofProject] of firstCallsOf) firstCallsOf.set(project, ofProject.filter(isOfOtherKey));
    },
  };
}
