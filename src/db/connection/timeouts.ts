// Connections on which every statement has a time limit. A broken network reports nothing, and without a limit the program would
// wait as long as TCP does: hours.

import { AsyncLocalStorage } from "node:async_hooks";
import type { PostgresPool, PostgresPoolClient } from "kysely";

export type TimeoutOptions = {
  /** What the statement that begins now may take. */
  readonly statementMs: () => number;
  /** What it may still take, whatever it is, once the signal says to stop. */
  readonly stoppingMs?: number | undefined;
  readonly stop?: AbortSignal | undefined;
};

/** All connections of a pool. Once a server is silent while the program stops, nothing more is asked of it. */
export function poolWithTimeouts(pool: PostgresPool, limits: TimeoutOptions): PostgresPool {
  let silence: Error | undefined;
  const onSilence = (error: Error) => {
    if (limits.stop?.aborted) silence = error;
  };
  return {
    options: pool.options,
    ...(pool.Client && { Client: pool.Client }),
    end: () => pool.end(),
    async connect() {
      if (silence) throw silence;
      try {
        return clientWithTimeouts(await pool.connect(), limits, onSilence);
      } catch (error) {
        if (error instanceof Error && CONNECT_TIMEOUT_MESSAGE.test(error.message)) onSilence(error);
        throw error;
      }
    },
  };
}

/** What pg says of a server that is silent. "timeout exceeded" is said where all connections are in use. */
const CONNECT_TIMEOUT_MESSAGE = /^timeout expired|^Connection terminated due to connection timeout/;

/**
 * After a statement without an answer nobody knows what became of it and whose answer comes next: the connection takes no
 * other one, and is thrown away when it is given back. To whoever waited it is a connection that was lost.
 */
function clientWithTimeouts(
  client: PostgresPoolClient,
  limits: TimeoutOptions,
  onSilence: (error: Error) => void,
): PostgresPoolClient {
  let lost: Error | undefined;
  const query = async (text: string, values: readonly unknown[]): Promise<unknown> => {
    if (lost) throw lost;
    const limit = startStatementTimer(limits);
    try {
      return await Promise.race([client.query(text, values), limit.over]);
    } catch (error) {
      if (error instanceof StatementTimeout) {
        lost = error;
        onSilence(error);
      }
      throw error;
    } finally {
      limit.close();
    }
  };
  return new Proxy(client, {
    get(target, name) {
      if (name === "query") return query;
      if (name === "release") return (destroy?: boolean) => target.release(lost ? true : destroy);
      return Reflect.get(target, name, target);
    },
  });
}

class StatementTimeout extends Error {
  override readonly name = "NoAnswer";
  /** That of a connection without an answer, which it is. */
  readonly code = "ETIMEDOUT";
  constructor(ms: number) {
    super(`the database has not answered within ${Math.round(ms / 1000)} s`);
  }
}

type StatementTimer = {
  /** Rejects when it was waited for long enough. */
  readonly over: Promise<never>;
  readonly close: () => void;
};

function startStatementTimer({ statementMs, stoppingMs, stop }: TimeoutOptions): StatementTimer {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const ms = statementMs();
  const hurriedMs = Math.min(ms, stoppingMs ?? ms);
  const giveUp = (afterMs: number) => setTimeout(() => reject(new StatementTimeout(afterMs)), afterMs);
  let timer = giveUp(stop?.aborted ? hurriedMs : ms);
  const hurry = () => {
    clearTimeout(timer);
    timer = giveUp(hurriedMs);
  };
  stop?.addEventListener("abort", hurry, { once: true });
  return {
    over,
    close() {
      clearTimeout(timer);
      stop?.removeEventListener("abort", hurry);
    },
  };
}

// How long the answer to a statement is waited for. A network that lost its way says nothing, and without a limit a program
// would wait for as long as TCP does: hours.

/** What an ordinary statement may take. In a transaction the server gives waiting for a lock up before. */
const STATEMENT_MS_DEFAULT = 30_000;
/** The server gives up first, where it is there: its words tell more, and it undoes what it did. */
const SERVER_MARGIN_MS = 5_000;

const timeoutOfCaller = new AsyncLocalStorage<number>();

/** Statements of `work` may take the server so long, where that is longer than what others may. */
export function withStatementTimeout<T>(serverMs: number, work: () => Promise<T>): Promise<T> {
  return timeoutOfCaller.run(Math.max(serverMs + SERVER_MARGIN_MS, statementTimeoutMs()), work);
}

export function statementTimeoutMs(): number {
  return timeoutOfCaller.getStore() ?? STATEMENT_MS_DEFAULT;
}
