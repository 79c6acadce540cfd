// Sends the beginning of a transaction together with its first statement, which saves a round trip for each transaction.

export type SendStatement = (text: string, values: readonly unknown[]) => Promise<unknown>;

/** As Kysely begins transactions. */
const BEGIN = /^(?:begin|start transaction[\w ]*)$/;

/**
 * Holds the beginning of a transaction back until the next statement. Statements can be sent together only if none has parameters: if
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
