// What a front sees of a program, and what it may do about it.

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
  /** The connection ends. Going out, the peer never hears of it; coming back, it was done and nobody is told. */
  | { readonly kind: "cut" }
  /** The connection ends in the middle of the service's answer. */
  | { readonly kind: "half" }
  /** Nothing passes on this connection any more, and nobody is told. */
  | { readonly kind: "hole" }
  | { readonly kind: "delay"; readonly ms: number }
  /** The database refuses: going out, in place of the statement; coming back, after it was executed. */
  | { readonly kind: "error"; readonly sqlstate: string };

/** Asked at every event. */
export type Gate = (event: FaultEvent) => Action;

export const PASS: Action = { kind: "pass" };
