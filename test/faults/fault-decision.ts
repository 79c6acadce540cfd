// A front is a proxy between a program and the service or the database. For each event it asks here whether to inject a fault.

/** Where an event is seen: before something reaches the peer, or before the peer's answer reaches the program. */
export type Side = "out" | "back";

export type FaultEvent = {
  /** The name of the program that uses the front. */
  readonly who: string;
  readonly peer: "service" | "database";
  readonly side: Side;
  /** A request's path, or the first words of a statement. */
  readonly name: string;
};

export type Action =
  | { readonly kind: "pass" }
  /** The connection ends: before the peer got the request ("out"), or after it has executed it ("back"). */
  | { readonly kind: "cut" }
  /** The connection ends in the middle of the service's answer. */
  | { readonly kind: "cut-halfway" }
  /** From now on nothing passes on this connection, and it stays open. */
  | { readonly kind: "silence" }
  | { readonly kind: "delay"; readonly ms: number }
  /** The database answers with an error: without having executed the statement ("out"), or after it ("back"). */
  | { readonly kind: "error"; readonly sqlstate: string };

/** Called by a front at every event. */
export type DecideFault = (event: FaultEvent) => Action;

export const PASS: Action = { kind: "pass" };

export type Fault = {
  readonly who: string;
  /** The number of the event, from 1. If the fault can't happen at that event, it happens at the next one where it can. */
  readonly point: number;
  readonly fits: (event: FaultEvent) => boolean;
  readonly act: () => Action;
};

/** Injects one fault at one event of one program. */
export function arm({ who, point, fits, act }: Fault) {
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
  /** `hit` is the event at which the fault happened; `happened` resolves then. */
  return { decideFault, hit: () => hit, happened };
}
