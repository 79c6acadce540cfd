// Connections on which every statement has a time limit. A broken network reports nothing, and without a limit the program would
// wait as long as TCP does: hours.

import { AsyncLocalStorage } from "node:async_hooks";
import type { PostgresPool, PostgresPoolClient } from "kysely";

/** For an ordinary statement. In a transaction the server ends a wait for a lock earlier. */
const STATEMENT_MS_DEFAULT = 30_000;
/** On top of the server's own limit, so that a server that can be reached gives up first: its error says more, and it rolls back. */
const SERVER_MARGIN_MS = 5_000;

const timeoutOfCaller = new AsyncLocalStorage<number>();

/** Within `work` the server may take `serverMs` for a statement. A limit that is already longer stays. */
export function withStatementTimeout<T>(serverMs: number, work: () => Promise<T>): Promise<T> {
  return timeoutOfCaller.run(Math.max(serverMs + SERVER_MARGIN_MS, statementTimeoutMs()), work);
}

export function statementTimeoutMs(): number {
  return timeoutOfCaller.getStore() ?? STATEMENT_MS_DEFAULT;
}

export type TimeoutOptions = {
  /** The limit of a statement that begins now. */
  readonly statementMs: () => number;
  /** The limit of a statement that begins, or goes on, after the stop signal, if that is shorter. */
  readonly stoppingMs?: number | undefined;
  readonly stop?: AbortSignal | undefined;
};

/** pg's errors for a server that does not answer. "timeout exceeded" is not one of them: it means that all connections are in use. */
const CONNECT_TIMEOUT_MESSAGE = /^timeout expired|^Connection terminated due to connection timeout/;

/** Limits all connections of a pool. If the server is silent while the program stops, nothing more is sent to it. */
export function poolWithTimeouts(pool: PostgresPool, options: TimeoutOptions): PostgresPool {
  let silence: Error | undefined;
  const onSilence = (error: Error) => {
    if (options.stop?.aborted) silence = error;
  };
  return wrapPool(pool, async () => {
    if (silence) throw silence;
    try {
      return clientWithTimeouts(await pool.connect(), options, onSilence);
    } catch (error) {
      if (error instanceof Error && CONNECT_TIMEOUT_MESSAGE.test(error.message)) onSilence(error);
      throw error;
    }
  });
}

/** Returns the same pool with another `connect`. */
export function wrapPool(pool: PostgresPool, connect: PostgresPool["connect"]): PostgresPool {
  return { options: pool.options, ...(pool.Client && { Client: pool.Client }), end: () => pool.end(), connect };
}

/**
 * After a statement without an answer its effect is unknown, and the next answer to arrive may be its answer. The connection
 * therefore takes no further statement, and is destroyed when it is released. The caller gets the error of a lost connection.
 */
function clientWithTimeouts(
  client: PostgresPoolClient,
  options: TimeoutOptions,
  onSilence: (error: Error) => void,
): PostgresPoolClient {
  let timeout: StatementTimeout | undefined;
  const query = joinBegin(async (text, values) => {
    if (timeout) throw timeout;
    const timer = startStatementTimer(options);
    try {
      return await Promise.race([client.query(text, values), timer.expired]);
    } catch (error) {
      if (error instanceof StatementTimeout) {
        timeout = error;
        onSilence(error);
      }
      throw error;
    } finally {
      timer.clear();
    }
  });
  return new Proxy(client, {
    get(target, name) {
      if (name === "query") return query;
      if (name === "release") return (destroy?: boolean) => target.release(timeout ? true : destroy);
      return Reflect.get(target, name, target);
    },
  });
}

class StatementTimeout extends Error {
  override readonly name = "StatementTimeout";
  /** With this code, isConnectionError counts the error as a lost connection. */
  readonly code = "ETIMEDOUT";
  constructor(ms: number) {
    super(`the database has not answered within ${Math.round(ms / 1000)} s`);
  }
}

type StatementTimer = { readonly expired: Promise<never>; readonly clear: () => void };

function startStatementTimer({ statementMs, stoppingMs, stop }: TimeoutOptions): StatementTimer {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const ms = statementMs();
  const shortenedMs = Math.min(ms, stoppingMs ?? ms);
  const expireAfter = (afterMs: number) => setTimeout(() => reject(new StatementTimeout(afterMs)), afterMs);
  let timer = expireAfter(stop?.aborted ? shortenedMs : ms);
  const shorten = () => {
    clearTimeout(timer);
    timer = expireAfter(shortenedMs);
  };
  stop?.addEventListener("abort", shorten, { once: true });
  return {
    expired,
    clear() {
      clearTimeout(timer);
      stop?.removeEventListener("abort", shorten);
    },
  };
}

export type SendStatement = (text: string, values: readonly unknown[]) => Promise<unknown>;

/** As Kysely begins transactions. */
const BEGIN = /^(?:begin|start transaction[\w ]*)$/;

/**
 * Saves a round trip for each transaction. Holds the beginning of a transaction back until the next statement. Statements can be sent together only if none has parameters: if
 * the next one has some, the beginning is sent before it, alone. If a joined beginning fails, the caller rolls back, as after any failed
 * statement.
 */
export function joinBegin(send: SendStatement): SendStatement {
  let begin: string | undefined;
  return async (text, values) => {
    if (begin === undefined) {
      if (!BEGIN.test(text)) return send(text, values);
      begin = text;
      return { command: "BEGIN", rowCount: null, rows: [] };
    }
    const first = begin;
    begin = undefined;
    if (values.length === 0) {
      const results = await send(`${first}; ${text}`, []);
      return Array.isArray(results) ? results.at(-1) : results;
    }
    await send(first, []);
    return send(text, values);
  };
}
