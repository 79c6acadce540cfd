// Remembers which keys the service rejected, so that a rejected key is not sent again with every call of a run.

import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { isKeyRejected } from "./errors.ts";

/** The parts of a call that decide whether an earlier refusal applies to it. */
type KeyUse = { readonly key: Secret; readonly operation: string };
export function openAuthFailures() {
  let refused: { readonly use: KeyUse; readonly error: AppError }[] = [];

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

  return {
    check,
    /**
     * Runs a call, and remembers if it is refused. If the service rejects the key itself, no call with the key is made again; any other
     * refusal is remembered for this operation only, because the key may be allowed others.
     */
    async guard<T>(use: KeyUse, call: () => Promise<T>): Promise<T> {
      check(use);
      try {
        return await call();
      } catch (error) {
        if (error instanceof AppError && error.code === "unauthorized" && !refusalOf(use)) refused.push({ use, error });
        throw error;
      }
    },
    /** Forgets the refusals of one key, or of all keys. */
    forget(key?: Secret): void {
      refused = refused.filter(({ use }) => key !== undefined && !use.key.equals(key));
    },
  };
}
