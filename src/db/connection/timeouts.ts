// Gives each statement a time limit, as TCP may wait for hours on a broken network, and each transaction the settings of its caller.

import { AsyncLocalStorage } from "node:async_hooks";
import type { PostgresPool, PostgresPoolClient } from "kysely";

/** The limit of a statement unless its caller sets a longer one. */
const STATEMENT_MS_DEFAULT = 30_000;
/** Added to the server's own limit, so that a server that can be reached gives up first: its error says more, and it rolls back at once. */
const SERVER_MARGIN_MS = 5_000;

export type Settings = Readonly<Record<string, string>>;

const limitsOfCaller = new AsyncLocalStorage<{ readonly statementMs: number; readonly settings: Settings }>();

/** Limits each statement of `work` to `serverMs` and a margin, or to the present limit if that is longer. Transactions of `work` get `settings`. */
export function withStatementTimeout<T>(serverMs: number, work: () => Promise<T>, settings: Settings = {}): Promise<T> {
  const statementMs = Math.max(serverMs + SERVER_MARGIN_MS, statementTimeoutMs());
  return limitsOfCaller.run({ statementMs, settings }, work);
}

export function statementTimeoutMs(): number {
  return limitsOfCaller.getStore()?.statementMs ?? STATEMENT_MS_DEFAULT;
}

/** The statement that applies the settings to one transaction; "" without any. Settings of a session would reach other clients of a pooler. */
export function settingsStatement(settings: Settings = limitsOfCaller.getStore()?.settings ?? {}): string {
  const calls = Object.entries(settings).map(([name, value]) => `pg_catalog.set_config('${name}', '${value}', true)`);
  return calls.length > 0 ? `select ${calls.join(", ")}` : "";
}

/** `statementMs` returns the limit of a statement that begins now. Once `giveUp` is aborted, all statements fail, even those in flight. */
export function poolWithTimeouts(
  pool: PostgresPool,
  statementMs: () => number,
  giveUp?: AbortSignal,
  connect: PostgresPool["connect"] = () => pool.connect(),
): PostgresPool {
  return {
    options: pool.options,
    ...(pool.Client && { Client: pool.Client }),
    end: () => pool.end(),
    async connect() {
      if (giveUp?.aborted) throw statementTimeout();
      return clientWithTimeouts(await connect(), statementMs, giveUp);
    },
  };
}

/** How Kysely begins a transaction. The settings are sent in the same message, which saves a round trip. */
const BEGIN = /^(?:begin$|start transaction )/;

/**
 * After a timeout the answer may still arrive, and would be taken for the answer to the next statement. So the connection takes no further
 * statement, and is destroyed when it is released. With pg's own `query_timeout` it would be used again.
 */
function clientWithTimeouts(client: PostgresPoolClient, statementMs: () => number, giveUp?: AbortSignal) {
  let timeoutError: Error | undefined;
  const query = async (text: string, values: readonly unknown[]) => {
    if (timeoutError) throw timeoutError;
    const { promise: expired, reject } = Promise.withResolvers<never>();
    const expire = () => {
      timeoutError = statementTimeout();
      reject(timeoutError);
    };
    const timer = setTimeout(expire, giveUp?.aborted ? 0 : statementMs());
    giveUp?.addEventListener("abort", expire, { once: true });
    try {
      const sent = BEGIN.test(text) ? `${text}; ${settingsStatement()}` : text;
      return await Promise.race([client.query(sent, values), expired]);
    } finally {
      clearTimeout(timer);
      giveUp?.removeEventListener("abort", expire);
    }
  };
  return new Proxy(client, {
    get(target, name) {
      if (name === "query") return query;
      if (name === "release") return (destroy?: boolean) => target.release(timeoutError ? true : destroy);
      return Reflect.get(target, name, target);
    },
  });
}

/** isConnectionError recognises this code. */
function statementTimeout(): Error {
  return Object.assign(new Error("the database has not answered in time"), { code: "ETIMEDOUT" });
}
