// Reads what the log of the test server says about one database.

import { randomUUID } from "node:crypto";
import { createReadStream, statSync } from "node:fs";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import type pg from "pg";
import { inject } from "vitest";
import { WAIT_MS_MAX } from "./limits.ts";

const POLL_MS = 20;

/** What an entry begins with (log_line_prefix): time, process, database. Its further lines do not. */
const BEGINNING = /^\S+ \S+ \S+ \[\d+\] <([^>]*)> /;

/** The log is read from this position on, as a whole run logs hundreds of megabytes. The databases of this process are made later. */
let beginning = lengthNow();

/** Skips what is in the log now. A later test looks only for its own secrets, which can't be in that part. */
export function forgetServerLog(): void {
  beginning = lengthNow();
}

/** Undefined if the log can't be read. Its lines may arrive late, so this makes a statement and waits until the log has it. */
export async function readServerLog(client: pg.Client): Promise<string | undefined> {
  const { logFile } = inject("postgres");
  if (logFile === undefined) return undefined;
  const mark = randomUUID();
  const { rows } = await client.query<{ name: string }>(`select current_database() as name /* ${mark} */`);
  const endMs = Date.now() + WAIT_MS_MAX;
  for (;;) {
    const log = await text(createReadStream(logFile, { start: beginning, encoding: "latin1" }));
    if (log.includes(mark)) return aboutDatabase(log, rows[0]?.name ?? "");
    if (Date.now() > endMs) throw new Error(`${logFile} does not have a statement that was made ${WAIT_MS_MAX} ms ago`);
    await setTimeout(POLL_MS);
  }
}

/** 0 if there is no server, as in the tests of the package. */
function lengthNow(): number {
  const server = inject("postgres") as { readonly logFile?: string | undefined } | undefined;
  return server?.logFile === undefined ? 0 : statSync(server.logFile).size;
}

/** The lines without those about other databases. Lines that name no database, or an unknown one, are kept. */
function aboutDatabase(log: string, name: string): string {
  const wanted = [name, "", "[unknown]"];
  let kept = true;
  const lines = log.split("\n").filter((line) => {
    const database = BEGINNING.exec(line)?.[1];
    if (database !== undefined) kept = wanted.includes(database);
    return kept;
  });
  return lines.join("\n");
}
