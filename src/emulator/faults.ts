// The faults that a test can inject into the answer to one request.

import type { OutgoingHttpHeaders } from "node:http";
import type { Json } from "./answer.ts";
import type { BreakdownRow } from "./breakdown.ts";

/** A request as the log keeps it: the id of its key, never the secret. */
export type SeenRequest = {
  readonly method: string;
  /** As it came, with the query. */
  readonly path: string;
  /** Undefined when the secret is no working key's. */
  readonly keyId: string | undefined;
  /** Undefined while nothing was answered, and for good when the connection was dropped before that. */
  readonly status: number | undefined;
  /** By the clock of this machine, not by the service's. */
  readonly receivedAt: Date;
};

export type Fault =
  /** Another answer, sent as it stands; the request has no effect. A length or an encoding can be told wrong. */
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers?: OutgoingHttpHeaders;
      readonly body?: string | Uint8Array;
    }
  /** The good answer with another content; a text is sent as it stands. */
  | { readonly kind: "body"; readonly change: (json: Json) => unknown }
  /** The connection ends before any answer, and the request has no effect. */
  | { readonly kind: "drop" }
  /** The request has its effect, and the connection ends before any answer. */
  | { readonly kind: "lose" }
  /** The connection ends in the middle of the good answer. */
  | { readonly kind: "cut" }
  /** The headers of the good answer, and then nothing until the client goes. */
  | { readonly kind: "stall" }
  /** The good answer, byte by byte. */
  | { readonly kind: "trickle"; readonly everyMs: number }
  /** The good answer of the moment the request came, sent later. */
  | { readonly kind: "delay"; readonly delayMs: number }
  /** The same, sent when the promise is kept: for tests that need an order of events and not a time. */
  | { readonly kind: "hold"; readonly until: Promise<unknown> };

/** Asked at every request; undefined lets the good answer through. */
export type FaultPlan = (request: SeenRequest) => Fault | undefined;

/** A breakdown whose rows are others: negative, weekly, doubled, none. */
export function changeRows(change: (rows: readonly BreakdownRow[]) => readonly unknown[]): Fault {
  return {
    kind: "body",
    change: (json) => (Array.isArray(json.results) ? { ...json, results: change(json.results) } : json),
  };
}
