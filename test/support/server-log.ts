// Reads what the suite's server wrote down about one database.

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import type pg from "pg";
import { inject } from "vitest";
import { WAIT_MS_MAX } from "./limits.ts";

const POLL_MS = 20;

/** How a line begins that is not the continuation of another (log_line_prefix): when, process, database. */
const BEGINNING = /^\S+ \S+ \S+ \[\d+\] <([^>]*)> /;

/**
 * Undefined where the server keeps its log to itself. The log may be on its way here through a pipe: it is complete up
 * to a statement of our own as soon as that is in it.
 */
export async function readServerLog(client: pg.Client): Promise<string | undefined> {
  const { logFile } = inject("postgres");
  if (logFile === undefined) return undefined;
  const mark = randomUUID();
  const { rows } = await client.query<{ name: string }>(`select current_database() as name /* ${mark} */`);
  const endMs = Date.now() + WAIT_MS_MAX;
  for (;;) {
    const log = await readFile(logFile, "latin1");
    if (log.includes(mark)) return aboutDatabase(log, rows[0]?.name ?? "");
    if (Date.now() > endMs) throw new Error(`${logFile} does not have a statement that was made ${WAIT_MS_MAX} ms ago`);
    await setTimeout(POLL_MS);
  }
}

/** Without the lines of other test files, which are many. Some lines are about no database, or none that is known yet. */
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
