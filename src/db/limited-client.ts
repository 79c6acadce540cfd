// Connections on which no statement is waited for without end.

import type { PostgresPool, PostgresPoolClient } from "kysely";

export type Limits = {
  /** What the statement that begins now may take. */
  readonly statementMs: () => number;
  /** What it may still take, whatever it is, once the signal says to stop. */
  readonly stoppingMs?: number | undefined;
  readonly stop?: AbortSignal | undefined;
};

/** All connections of a pool. Once a server is silent while the program stops, nothing more is asked of it. */
export function limitedPool(pool: PostgresPool, limits: Limits): PostgresPool {
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
        return limitedClient(await pool.connect(), limits, onSilence);
      } catch (error) {
        if (error instanceof Error && NO_CONNECTION_IN_TIME.test(error.message)) onSilence(error);
        throw error;
      }
    },
  };
}

/** What pg says of a server that is silent. "timeout exceeded" is said where all connections are in use. */
const NO_CONNECTION_IN_TIME = /^timeout expired|^Connection terminated due to connection timeout/;

/**
 * After a statement without an answer nobody knows what became of it and whose answer comes next: the connection takes no
 * other one, and is thrown away when it is given back. To whoever waited it is a connection that was lost.
 */
function limitedClient(
  client: PostgresPoolClient,
  limits: Limits,
  onSilence: (error: Error) => void,
): PostgresPoolClient {
  let lost: Error | undefined;
  const query = async (text: string, values: readonly unknown[]): Promise<unknown> => {
    if (lost) throw lost;
    const limit = openLimit(limits);
    try {
      return await Promise.race([client.query(text, values), limit.over]);
    } catch (error) {
      if (error instanceof NoAnswer) {
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

class NoAnswer extends Error {
  override readonly name = "NoAnswer";
  /** That of a connection without an answer, which it is. */
  readonly code = "ETIMEDOUT";
  constructor(ms: number) {
    super(`the database has not answered within ${Math.round(ms / 1000)} s`);
  }
}

type Limit = {
  /** Rejects when it was waited for long enough. */
  readonly over: Promise<never>;
  readonly close: () => void;
};

function openLimit({ statementMs, stoppingMs, stop }: Limits): Limit {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const ms = statementMs();
  const hurriedMs = Math.min(ms, stoppingMs ?? ms);
  const giveUp = (afterMs: number) => setTimeout(() => reject(new NoAnswer(afterMs)), afterMs);
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
