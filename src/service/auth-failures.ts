// Remembers which keys the service rejected, so that a rejected key is not sent again with every call of a run.

import { waitUntilSettled } from "../async.ts";
import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { isKeyRejected } from "./errors.ts";

/** The parts of a call that decide whether an earlier refusal applies to it. */
type KeyUse = { readonly key: Secret; readonly project: string; readonly operation: string };
/** The first call of a key for an operation; `running` is undefined once it has ended. */
type FirstCall = { readonly use: KeyUse; running: Promise<unknown> | undefined };

export function openAuthFailures() {
  let refused: { readonly use: KeyUse; readonly error: AppError }[] = [];
  /** By project. */
  const firstCallsOf = new Map<string, readonly FirstCall[]>();

  function refusalOf(use: KeyUse): AppError | undefined {
    const isSame = (other: KeyUse) => other.key.equals(use.key) && other.operation === use.operation;
    return refused.find(({ use: other, error }) => isSame(other) || (isKeyRejected(error) && other.key.equals(use.key)))
      ?.error;
  }

  /** Throws if this use is known to be refused. */
  function check(use: KeyUse): void {
    const known = refusalOf(use);
    if (known === undefined) return;
    const { code, message, details } = known;
    throw new AppError(code, `not called again after a refusal: ${message}`, { details });
  }

  async function callAfter<T>(
    earlier: readonly (FirstCall | undefined)[],
    use: KeyUse,
    signal: AbortSignal,
    call: () => Promise<T>,
  ): Promise<T> {
    for (const first of earlier) if (first?.running) await waitUntilSettled(first.running, signal);
    check(use);
    try {
      return await call();
    } catch (error) {
      if (error instanceof AppError && error.code === "unauthorized" && !refusalOf(use)) refused.push({ use, error });
      throw error;
    }
  }

  return {
    check,
    /**
     * Runs a call, and remembers if it is refused. If the service rejects the key itself, no call with the key is made again; any other
     * refusal is remembered for this operation only, because the key may be allowed others. All calls of a key in a project wait for its
     * first call there, and all calls of an operation wait for the first call of that operation: otherwise all concurrent calls would be
     * sent and refused.
     */
    async guard<T>(use: KeyUse, signal: AbortSignal, call: () => Promise<T>): Promise<T> {
      const ofProject = firstCallsOf.get(use.project) ?? [];
      const ofKey = ofProject.filter((first) => first.use.key.equals(use.key));
      const ofOperation = ofKey.find((first) => first.use.operation === use.operation);
      const running = callAfter([ofKey[0], ofOperation], use, signal, call);
      if (ofOperation) return await running;
      const first: FirstCall = { use, running };
      firstCallsOf.set(use.project, [...ofProject, first]);
      return await running.finally(() => {
        first.running = undefined;
      });
    },
    /** Forgets the refusals of one key, or of all keys. */
    forget(key?: Secret): void {
      const isOfOtherKey = ({ use }: { use: KeyUse }) => key !== undefined && !use.key.equals(key);
      refused = refused.filter(isOfOtherKey);
      for (const [project, ofProject] of firstCallsOf) firstCallsOf.set(project, ofProject.filter(isOfOtherKey));
    },
  };
}
