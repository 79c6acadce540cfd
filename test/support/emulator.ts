// The emulator for tests: records its requests, injects faults, and can behave as a service that ignores parts of a request.

import { once } from "node:events";
import type { OutgoingHttpHeaders } from "node:http";
import { addDays, dayOf } from "../../src/emulator/days.ts";
import type { KeyAndState } from "../../src/emulator/keys.ts";
import {
  answerTo,
  type Emulated,
  type EmulatorAnswer,
  type IncomingRequest,
  type Json,
} from "../../src/emulator/routes.ts";
import {
  type EmulatorSettings as Options,
  outgoingOf,
  startEmulator as startPlainEmulator,
} from "../../src/emulator/server.ts";
import { type GroupValue, sortIfList, sumOf, type UsageAmounts } from "../../src/emulator/usage.ts";

type BreakdownRow = UsageAmounts & { readonly grouping: Readonly<Record<string, GroupValue>> };

/** A recorded request, with the id of its key instead of the secret. */
export type SeenRequest = {
  readonly method: string;
  /** As it came, with the query. */
  readonly path: string;
  /** Undefined if no working key has the secret. */
  readonly keyId: string | undefined;
  /** Undefined until the answer is sent. If the connection ends first, it stays undefined. */
  status: number | undefined;
  /** By the clock of this machine, not by the service's. */
  readonly receivedAt: Date;
};

export type Fault =
  /** This answer in place of the good one; the request has no effect. The headers may state a wrong length or encoding. */
  | ({ readonly kind: "answer" } & Outgoing)
  /** The good answer with another content. If the content is a string, it is sent as it is, and not as JSON. */
  | { readonly kind: "body"; readonly change: (json: Json) => unknown }
  /** The connection ends before any answer, and the request has no effect. */
  | { readonly kind: "drop" }
  /** The request has its effect, and the connection ends before any answer. */
  | { readonly kind: "lose" }
  /** The good answer at the time of the request, sent when the promise resolves. */
  | { readonly kind: "hold"; readonly until: Promise<unknown> };

/** Called for every request. If it returns undefined, the good answer is sent. */
export type FaultPlan = (request: SeenRequest) => Fault | undefined;

/** A breakdown with changed rows. */
export function changeRows(change: (rows: readonly BreakdownRow[]) => readonly unknown[]): Fault {
  const results = (json: Json) => (Array.isArray(json.results) ? { ...json, results: change(json.results) } : json);
  return { kind: "body", change: results };
}

/** In what the emulator differs from the service. Without modes it answers as the service does. */
type Modes = {
  /**
   * How the emulator treats `start` and `end`, and which days its answer names:
   * - "ignored": both are ignored; the answer names and covers the last 30 days
   * - "undated": both are ignored; the answer is one summary of yesterday that names no day
   * - "cumulative": both are ignored; the answer is one summary of all usage since `firstPaidDay`, and names no day
   */
  readonly window?: "ignored" | "undated" | "cumulative";
  /** "ignored": every request is answered as if it had no grouping. */
  readonly grouping?: "ignored";
  /** "missing": Get Fields answers 404. */
  readonly fields?: "missing";
  /** "missing": the service does not offer billing, and its operations answer 404. */
  readonly billing?: "missing";
};

export type EmulatorOptions = Omit<Options, "handle"> & Modes & { readonly fault?: FaultPlan };

/** A test may change `fault` and `now` between two requests. Disposing of it ends the answers in progress. */
export type Emulator = AsyncDisposable & {
  fault: FaultPlan | undefined;
  /** The service's clock. */
  now: () => Date;
  readonly url: string;
  /** Every request so far, in the order they came. */
  readonly requests: readonly Readonly<SeenRequest>[];
  keys(): KeyAndState[];
  secretWorks(secret: string): boolean;
};

export async function startEmulator(options: EmulatorOptions): Promise<Emulator> {
  const requests: SeenRequest[] = [];
  const plain = await startPlainEmulator({
    ...options,
    async handle(incoming, response, service) {
      const { method, rawUrl: path, caller } = incoming;
      const seen: SeenRequest = { method, path, keyId: caller?.apiKeyId, status: undefined, receivedAt: new Date() };
      requests.push(seen);
      const fault = emulator.fault?.(seen);
      if (fault?.kind === "drop") return void response.destroy();
      const outgoing =
        fault?.kind === "answer" ? fault : outgoingWith(fault, answerAs(options, incoming, service), incoming);
      if (fault?.kind === "lose") return void response.destroy();
      if (fault?.kind === "hold") await Promise.race([fault.until, once(response, "close")]);
      if (response.closed) return;
      seen.status = outgoing.status;
      response.writeHead(outgoing.status, outgoing.headers).end(outgoing.body);
    },
  });
  const emulator: Emulator = {
    url: plain.url,
    requests,
    fault: options.fault,
    get now() {
      return plain.now;
    },
    set now(now) {
      plain.now = now;
    },
    keys: () => plain.keys.keysAndStates(plain.now()),
    secretWorks: (secret) => plain.keys.find(secret, plain.now()) !== undefined,
    [Symbol.asyncDispose]: plain[Symbol.asyncDispose],
  };
  return emulator;
}

// The modes.

function answerAs(modes: Modes, incoming: IncomingRequest, service: Emulated): EmulatorAnswer {
  const { caller, now } = incoming;
  const url = new URL(incoming.url);
  const { pathname, searchParams } = url;
  const notFound: EmulatorAnswer = { status: 404, json: { category: "NOT_FOUND", details: "no such path" } };
  if (modes.billing === "missing" && caller && /\/(?:billing\/|balances$)/.test(pathname)) return notFound;
  if (modes.grouping === "ignored") searchParams.delete("grouping");
  const isSummary = modes.window !== undefined && modes.window !== "ignored" && pathname.endsWith("/usage/breakdown");
  if (modes.window) for (const name of ["start", "end"]) searchParams.delete(name);
  if (isSummary) {
    const yesterday = addDays(dayOf(now), -1);
    const isCumulative = modes.window === "cumulative";
    searchParams.set("start", isCumulative ? service.firstPaidDay : yesterday);
    searchParams.set("end", isCumulative ? dayOf(now) : yesterday);
  }
  const answer = answerTo({ ...incoming, url }, service);
  if ("text" in answer || answer.status !== 200) return answer;
  if (modes.fields === "missing" && pathname.endsWith("/usage/fields")) return notFound;
  return isSummary
    ? { ...answer, json: { results: withoutDays(answer.json.results as readonly BreakdownRow[]) } }
    : answer;
}

/** The rows of all days, added up by group. */
function withoutDays(rows: readonly BreakdownRow[]): readonly BreakdownRow[] {
  const undated = rows.map((row) => {
    const { start: _, end: __, ...grouping } = row.grouping;
    return { ...row, grouping };
  });
  const keyOf = ({ grouping }: BreakdownRow) => JSON.stringify(Object.values(grouping).map(sortIfList));
  return [...Map.groupBy(undated, keyOf).values()].map((group) => ({
    ...sumOf(group),
    grouping: group[0]?.grouping ?? {},
  }));
}

// The faults.

type Outgoing = {
  readonly status: number;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Uint8Array;
};

function outgoingWith(fault: Fault | undefined, answer: EmulatorAnswer, incoming: IncomingRequest): Outgoing {
  if ("text" in answer || fault?.kind !== "body") return outgoingOf(answer, incoming);
  const json = fault.change(answer.json);
  const text = typeof json === "string" ? json : JSON.stringify(json);
  const outgoing = outgoingOf({ status: answer.status, text }, incoming);
  return { ...outgoing, headers: { ...outgoing.headers, "content-type": "application/json" } };
}
