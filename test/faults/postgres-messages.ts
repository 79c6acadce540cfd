// Messages of the Postgres protocol, version 3: cut from a stream of bytes, or made to inject an error.

export type Message = { readonly type: string; readonly bytes: Buffer };

/** Returns a function that cuts a stream, passed in chunks, into messages. The first message of a client has no type. */
export function messageSplitter(isClient: boolean, each: (message: Message) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  let hasType = !isClient;
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    for (;;) {
      const at = hasType ? 1 : 0;
      if (rest.length < at + 4) return;
      const length = at + rest.readInt32BE(at);
      if (rest.length < length) return;
      const bytes = rest.subarray(0, length);
      rest = rest.subarray(length);
      const next = { type: hasType ? String.fromCharCode(bytes[0] ?? 0) : "startup", bytes };
      hasType = true;
      each(next);
    }
  };
}

/** The statement that a client sends with these messages of the simple or the extended protocol, on one line; "" if there is none. */
export function statementText(group: readonly Message[]): string {
  const first = group.find(({ type }) => type === "Q" || type === "P");
  if (!first) return "";
  const text = first.bytes.toString("latin1", 5);
  // A Parse message begins with the statement's name, which is empty here.
  const words = text.split("\0")[first.type === "P" ? 1 : 0] ?? "";
  return words.replaceAll(/\s+/g, " ").trim();
}

/** The message of a statement to which the server itself answers with this error. */
export function refusedStatement(sqlstate: string): Buffer {
  const text = `do $$ begin raise exception 'a fault of the test' using errcode = '${sqlstate}'; end $$`;
  return message("Q", Buffer.from(`${text}\0`));
}

export function errorResponse(sqlstate: string): Buffer {
  const severity = endsSession(sqlstate) ? "FATAL" : "ERROR";
  const fields = [`S${severity}`, `V${severity}`, `C${sqlstate}`, "Ma fault of the test", ""];
  return message("E", Buffer.from(fields.map((field) => `${field}\0`).join("")));
}

/** Whether the server closes the connection after this error. */
export function endsSession(sqlstate: string): boolean {
  return sqlstate.startsWith("57P") || sqlstate.startsWith("08") || sqlstate === "53300";
}

export function message(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(5);
  head.write(type, 0, "latin1");
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, body]);
}
