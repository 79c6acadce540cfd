// The faults that a test can inject into the answer to one request.

import type { OutgoingHttpHeaders } from "node:http";
import type { BreakdownRow } from "./breakdown.ts";
import type { Json } from "./routes.ts";

/** A request in the log, with the id of its key and never the secret. */
export type SeenRequest = {
  readonly method: string;
  /** As it came, with the query. */
  readonly path: string;
  /** Undefined if no working key has the secret. */
  readonly keyId: string | undefined;
  /** Set when the answer is sent; undefined until then, and for good if the connection ends before. */
  status: number | undefined;
  /** By the clock of this machine, not by the service's. */
  readonly receivedAt: Date;
};

export type Fault =
  /** This answer in place of the good one; the request has no effect. The headers may state a wrong length or encoding. */
  | {
      readonly kind: "answer";
      readonly status: number;
      readonly headers?: OutgoingHttpHeaders;
      readonly body?: string | Uint8Array;
    }
  /** The good answer with another content. If the content is a string, it is sent as it is, and not as JSON. */
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
  /** The good answer at the time of the request, sent later. */
  | { readonly kind: "delay"; readonly delayMs: number }
  /** The same, sent when the promise resolves, for tests that need an order of events instead of a time. */
  | { readonly kind: "hold"; readonly until: Promise<unknown> };

/** Called for every request; undefined: the good answer is sent. */
export type FaultPlan = (request: SeenRequest) => Fault | undefined;

/** A breakdown with changed rows. */
export function changeRows(change: (rows: readonly BreakdownRow[]) => readonly unknown[]): Fault {
  return {
    kind: "body",
    change: (json) => (Array.isArray(json.results) ? { ...json, results: change(json.results) } : json),
  };
}
