// Has pivot.py use LibreOffice as a person would, in a process of its own.

import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { z } from "zod";

/** Debian's own: its package python3-uno is for no other. */
const PYTHON = "/usr/bin/python3";
const SCRIPT = path.join(import.meta.dirname, "pivot.py");
const PACKAGES = "libreoffice-base libreoffice-calc libreoffice-sdbc-postgresql python3-uno";
/** Longer than the script gives the office. */
const TIMEOUT_MS = 90_000;

export type Task = {
  readonly connection: {
    readonly host: string;
    readonly port: string;
    readonly database: string;
    readonly user: string;
    readonly password: string;
  };
  /** With its schema. It is read into a sheet, of which each metric is added up in a pivot table with a chart. */
  readonly view: string;
  readonly rows: string;
  readonly columns: string;
  readonly metrics: readonly string[];
  /** Tried one by one. */
  readonly statements: readonly string[];
  /** Where the spreadsheet is kept. */
  readonly file: string;
};

const Seen = z.object({
  listed: z.array(z.string()),
  readable: z.array(z.string()),
  /** Of each statement, why the database refused it. */
  refusals: z.array(z.string().nullable()),
  descriptions: z.record(z.string(), z.string()),
  /** The first row has the names. An empty cell is an empty text. */
  cells: z.array(z.array(z.union([z.string(), z.number()]))),
  pivots: z.record(z.string(), z.object({ total: z.number(), charted: z.number() })),
});
export type Seen = z.infer<typeof Seen>;

export async function useOffice(task: Task, timeZone: string): Promise<Seen> {
  const { PATH, HOME } = process.env;
  // -B: leaves no compiled files beside the sources.
  const running = promisify(execFile)(PYTHON, ["-B", SCRIPT], {
    env: { PATH, HOME, TZ: timeZone },
    timeout: TIMEOUT_MS,
  });
  // A script that does not get as far as its input breaks the pipe; its error says why.
  running.child.stdin?.on("error", () => {}).end(JSON.stringify(task));
  try {
    return Seen.parse(JSON.parse((await running).stdout));
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`LibreOffice did not do its task, for which it needs Debian's ${PACKAGES}: ${reason}`, { cause });
  }
}
