// A proxy between a program and Postgres. It sees each whole statement, and each whole answer, before passing it on.

import net from "node:net";
import { listen } from "../support/scripted-server.ts";
import { type Action, type DecideFault, PASS, type Side } from "./fault-decision.ts";
import {
  endsSession,
  errorResponse,
  type Message,
  message,
  messageSplitter,
  refusedStatement,
  statementText,
} from "./postgres-messages.ts";

export type PostgresFront = Awaited<ReturnType<typeof startPostgresFront>>;

export type PostgresFrontOptions = {
  readonly who?: string;
  readonly decideFault?: DecideFault;
  /** Replaces the text of a statement, to make the program's limits short enough for a test. */
  readonly rewrite?: (text: string) => string;
};

/** Parse, Bind, Describe, Execute, Close and Flush. The server may execute these before their Sync, so the front holds them until then. */
const PARTS = new Set(["P", "B", "D", "E", "C", "H"]);
const NAME_LENGTH = 70;

export async function startPostgresFront(databaseUrl: string, options: PostgresFrontOptions = {}) {
  const target = new URL(databaseUrl);
  const upstreams = new Set<net.Socket>();
  const silencers = new Set<() => void>();
  let state: "passes" | "refuses" | "swallows" = "passes";
  let refused = 0;
  const server = net.createServer({ noDelay: true }, (client) => {
    client.on("error", () => client.destroy());
    if (state === "swallows") return void client.resume();
    if (state === "refuses") {
      refused++;
      return void client.destroy();
    }
    const upstream = net.connect({ host: target.hostname, port: Number(target.port), noDelay: true });
    upstreams.add(upstream);
    upstream.on("error", () => upstream.destroy()).on("close", () => upstreams.delete(upstream));
    const silence = connect(client, upstream, options);
    silencers.add(silence);
    client.on("close", () => silencers.delete(silence));
  });
  const listening = await listen(server);
  /** The same database, through the front. */
  const { href: url } = Object.assign(new URL(databaseUrl), { host: `127.0.0.1:${listening.port}` });
  /** Ends every connection and refuses new ones. */
  const cut = () => {
    state = "refuses";
    for (const upstream of upstreams) upstream.destroy();
  };
  return {
    ...{ url, cut },
    /** From now on nothing passes on any connection, although all stay open. */
    silence: () => {
      state = "swallows";
      for (const silence of silencers) silence();
    },
    /** New connections pass again; the earlier ones still pass nothing on. */
    restore: () => {
      state = "passes";
    },
    /** How many connections were refused. */
    refused: () => refused,
    async [Symbol.asyncDispose]() {
      cut();
      await listening[Symbol.asyncDispose]();
    },
  };
}

/** Joins the two sides of one connection. Returns a function that silences it: from then on nothing passes. */
function connect(
  client: net.Socket,
  upstream: net.Socket,
  { who = "program", decideFault = () => PASS, rewrite }: PostgresFrontOptions,
): () => void {
  let isSilent = false;
  let current = "";
  const end = () => {
    client.destroy();
    upstream.destroy();
  };
  // While nothing passes, both sockets stay open, so each end believes that the other is still there.
  client.on("close", () => !isSilent && end());
  upstream.on("close", () => !isSilent && end());

  /** Does what `decideFault` returns. `pass` and `refuse` differ between the two directions. */
  const act = (side: Side, pass: () => void, refuse: (sqlstate: string) => void) => {
    if (isSilent) return;
    const name = current.slice(0, NAME_LENGTH);
    const action: Action = client.destroyed ? PASS : decideFault({ who, peer: "database", side, name });
    if (action.kind === "cut") end();
    else if (action.kind === "silence") isSilent = true;
    else if (action.kind === "error") refuse(action.sqlstate);
    else if (action.kind === "delay") setTimeout(() => !isSilent && pass(), action.ms);
    else pass();
  };

  let held: Message[] = [];
  const fromClient = messageSplitter(true, (each) => {
    if (isSilent) return;
    held.push(each);
    if (PARTS.has(each.type)) return;
    const group = held;
    held = [];
    const send = (bytes: Buffer) => void upstream.write(bytes);
    const pass = () => send(rewritten(group, rewrite));
    const endsStatement = each.type === "Q" || each.type === "S";
    if (!endsStatement) return pass();
    current = statementText(group);
    act("out", pass, (sqlstate) => {
      if (!endsSession(sqlstate)) return send(refusedStatement(sqlstate));
      client.end(errorResponse(sqlstate));
      upstream.destroy();
    });
  });

  let isOpen = false;
  let answer: Buffer[] = [];
  const fromServer = messageSplitter(false, ({ type, bytes }) => {
    if (isSilent) return;
    answer.push(bytes);
    const whole = Buffer.concat(answer);
    const isReady = type === "Z";
    if (isOpen && !isReady) return;
    answer = [];
    const pass = () => void client.write(whole);
    if (!isOpen) {
      isOpen = isReady;
      return pass();
    }
    act("back", pass, (sqlstate) => {
      if (endsSession(sqlstate)) {
        client.end(errorResponse(sqlstate));
        upstream.destroy();
        return;
      }
      client.write(Buffer.concat([errorResponse(sqlstate), bytes]));
    });
  });
  client.on("data", fromClient);
  upstream.on("data", fromServer);
  return () => {
    isSilent = true;
  };
}

function rewritten(group: readonly Message[], rewrite: (text: string) => string = (text) => text): Buffer {
  return Buffer.concat(
    group.map((each) => (each.type === "Q" || each.type === "P" ? resized(each, rewrite) : each.bytes)),
  );
}

/** Reads each byte as one character, so that bytes above 127 stay unchanged. */
function resized({ type, bytes }: Message, rewrite: (text: string) => string): Buffer {
  return message(type, Buffer.from(rewrite(bytes.toString("latin1", 5)), "latin1"));
}
