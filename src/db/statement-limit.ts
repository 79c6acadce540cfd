// How long the answer to a statement is waited for. A network that lost its way says nothing, and without a limit a program
// would wait for as long as TCP does: hours.

import { AsyncLocalStorage } from "node:async_hooks";

/** What an ordinary statement may take. In a transaction the server gives waiting for a lock up before. */
const ORDINARY_MS = 30_000;
/** The server gives up first, where it is there: its words tell more, and it undoes what it did. */
const MARGIN_MS = 5_000;

const limits = new AsyncLocalStorage<number>();

/** Statements of `work` may take the server so long, where that is longer than what others may. */
export function allowStatements<T>(serverMs: number, work: () => Promise<T>): Promise<T> {
  return limits.run(Math.max(serverMs + MARGIN_MS, statementLimitMs()), work);
}

export function statementLimitMs(): number {
  return limits.getStore() ?? ORDINARY_MS;
}
