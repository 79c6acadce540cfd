// Holds the service's answers in the middle of a run, so that a test can act at a known point of the run.

import type { Emulator } from "../support/emulator.ts";

/** Waits until the service gets request `number`. It and later ones are not answered until the returned function is called. */
export async function holdAnswersFrom(emulator: Emulator, number: number): Promise<() => void> {
  const requested = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  emulator.fault = () => {
    if (emulator.requests.length < number) return undefined;
    requested.resolve();
    return { kind: "hold", until: released.promise };
  };
  await requested.promise;
  return released.resolve;
}
