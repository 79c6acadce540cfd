// A front is a proxy between a program and the service or the database. For each event that it sees, it asks which fault to inject,
// if any.

/** Where an event is seen: before something reaches the peer, or before the peer's answer reaches the program. */
export type Side = "out" | "back";

export type FaultEvent = {
  /** Who is behind the front: the name of one program of a case. */
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
