// Injects one fault at one event of one program.

import { type Action, type DecideFault, type FaultEvent, PASS } from "./fault-decision.ts";

export type Armed = {
  readonly decideFault: DecideFault;
  /** The event at which the fault happened; undefined while it has not. */
  readonly hit: () => FaultEvent | undefined;
  /** Resolves when the fault happens; never if it does not. */
  readonly happened: Promise<void>;
};

export type Fault = {
  readonly who: string;
  /** The number of the event, from 1. If the fault can't happen at that event, it happens at the next one where it can. */
  readonly point: number;
  readonly fits: (event: FaultEvent) => boolean;
  readonly act: () => Action;
};

export function arm({ who, point, fits, act }: Fault): Armed {
  const { promise: happened, resolve } = Promise.withResolvers<void>();
  let events = 0;
  let hit: FaultEvent | undefined;
  const decideFault: DecideFault = (event) => {
    if (event.who !== who) return PASS;
    events++;
    if (hit || events < point || !fits(event)) return PASS;
    hit = event;
    resolve();
    return act();
  };
  return { decideFault, hit: () => hit, happened };
}
