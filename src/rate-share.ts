// What a process asks for, and what it gets, when it shares a service's rate limit. The rate limiter and the database have these types
// in common.

/** A key that calls are made with, and its own limits, if it has any. */
export type KeyLimit = {
  /** Where the key is found, such as "env PROD_KEY". Never the key itself. */
  readonly name: string;
  readonly requestsPerSecond?: number;
  readonly maxConcurrent?: number;
};

/** By the names of keys: what is left of the pause that the service asked for, in milliseconds. */
export type KeyPauses = Readonly<Record<string, number>>;

export type Demand = {
  /** The slots that the process may use until the answer comes, so that it can't give them back before. */
  readonly kept: number;
  /** The most calls that were in flight or waiting at one time since the last demand. */
  readonly wanted: number;
  /** Milliseconds until the rate allows the next call on slots that the process gave back. */
  readonly nextStartMs?: number;
};

/** How the slots were divided. */
export type AllocatedSlots = {
  /** The slots that are reserved for the process. */
  readonly slots: number;
  /** How many of them it may use from now on. It gives the others back as soon as it can, because another process needs them. */
  readonly usableSlots: number;
  /** The slots it is entitled to, and gets as soon as other processes give them back. */
  readonly fairSlots: number;
};

export type LeasedShare = AllocatedSlots & {
  /** How long the slots are reserved. This time starts after the lease was asked for, so counting it from the question is safe. */
  readonly lifeMs: number;
  /** If the process got more slots: milliseconds until its next call may start, because of the calls that were made on them before. */
  readonly startMs: number;
  /** What is left of the pause the service asked for. */
  readonly pauseMs: number;
  /** The pauses that the service asked for with single keys. */
  readonly keyPauses: KeyPauses;
};
