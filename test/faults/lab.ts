// The environment of the cases of exports and workers: one service for all of them, and one database with what the commands before all
// cases stored. Each case has a copy of that database, a front before the service, and a front before the database for each program.

import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Database, openPostgres } from "../../src/db/connection/database.ts";
import { copyDatabase, type DatabaseUrls } from "../support/database.ts";
import { type Emulator, startEmulator } from "../support/emulator.ts";
import { passwordsIn } from "../support/leaks.ts";
import { startProgram } from "../support/program.ts";
import type { Caps, Evidence, ProgramEnd } from "./case-evidence.ts";
import { REPLICAS, SECOND } from "./case-plan.ts";
import { violations } from "./check.ts";
import { type Filters, readEvidence, statuses } from "./evidence.ts";
import { type DecideFault, PASS } from "./fault-decision.ts";
import { type History, historyAfter, watchedFor } from "./history.ts";
import { endOf, type Interruption, RECOVERY, type Stage } from "./interrupt.ts";
import { leakViolations } from "./leak-violations.ts";
import { startPostgresFront } from "./postgres-front.ts";
import { type ServiceFrontOptions, startServiceFront } from "./service-front.ts";

export const PROJECT_ID = "project-1";

type Fields = Readonly<Record<string, unknown>>;

export type LabOptions = {
  /** Returns the configuration for a service at this address. */
  readonly config: (baseUrl: string) => Fields;
  readonly filters: Filters;
  /** The names of all slices that must be there in the end. */
  readonly due: readonly string[];
  /** The commands that run once, before all cases. They leave something to do. */
  readonly before: readonly (readonly string[])[];
};

export type Lab = AsyncDisposable & {
  readonly options: LabOptions;
  readonly emulator: Emulator;
  readonly baseline: DatabaseUrls;
  readonly history: History;
  /** The slices that were due before the first case. */
  readonly dueBefore: string[];
  /** A key for each program of a case, so that the front can tell who asks. */
  readonly keyOf: (who: string) => string;
  readonly whoHas: (key: string) => string;
};

const WHO = ["first", ...REPLICAS, SECOND, RECOVERY];

export async function openLab(options: LabOptions): Promise<Lab> {
  const opened = new AsyncDisposableStack();
  const keys = new Map(WHO.map((who) => [who, randomBytes(20).toString("hex")]));
  const consoleKeys = [...keys.values()].map((secret) => ({ secret, projectId: PROJECT_ID, scopes: ["member"] }));
  const emulator = opened.use(await startEmulator({ consoleKeys }));
  const baseline = opened.use(await copyDatabase());
  const lab = {
    options,
    emulator,
    baseline,
    history: historyAfter(),
    dueBefore: [] as string[],
    keyOf: (who: string) => keys.get(who) ?? "",
    whoHas: (key: string) => [...keys].find(([, secret]) => secret === key)?.[0] ?? "nobody",
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
  await using context = await openCase(lab, { database: baseline, history: lab.history });
  for (const args of options.before) {
    const { status, output } = await context.end(await context.start("first", args));
    if (status !== 0) throw new Error(`${args.join(" ")}, before all cases, ended with ${status}: ${output}`);
  }
  lab.dueBefore.push(...(await statuses(context.db, options.filters)).keys());
  return lab;
}

export type Case = Stage & {
  readonly db: Database;
  readonly history: History;
  readonly evidence: (recovery: string | undefined, caps: Caps) => Promise<Evidence>;
};

type CaseOptions = {
  /** This database itself is used, instead of a copy of the baseline. */
  readonly database?: DatabaseUrls;
  readonly history?: History;
  /** A program is killed after this time. */
  readonly timeoutMs?: number;
};

/** Behind a front that passes nothing on, each step of a program takes as long as the time limit of a statement. */
const PROGRAM_MS_MAX = 180_000;

/** Shortens how long a stopped program holds its locks: 6 s do not delay a test much, and let a slow machine load a file. */
export function shorterLimits(text: string): string {
  return text.replace("'idle_in_transaction_session_timeout', '60s'", "'idle_in_transaction_session_timeout', '6s'");
}

export async function openCase(
  lab: Lab,
  { database, history, timeoutMs = PROGRAM_MS_MAX }: CaseOptions = {},
): Promise<Case> {
  const opened = new AsyncDisposableStack();
  const { filters, due, config } = lab.options;
  const { directUrl: url } = database ?? opened.use(await copyDatabase(lab.baseline));
  const db = openPostgres(url);
  opened.defer(() => db.destroy());
  const folder = await mkdtemp(path.join(tmpdir(), "usage-export-fault-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  const ends: ProgramEnd[] = [];
  const decideFault: DecideFault = (event) => context.decideFault(event);
  const ownHistory = history ?? historyAfter(lab.history);
  const front = opened.use(
    await startServiceFront(lab.emulator.url, { decideFault, watch: watchedFor(ownHistory), whoAsks: whoAsks(lab) }),
  );
  await writeFile(path.join(folder, "jobs.config.json"), JSON.stringify(config(front.url)));

  const context: Case = {
    decideFault: () => PASS,
    db,
    history: ownHistory,
    async start(who, args) {
      const database = opened.use(await startPostgresFront(url, { who, decideFault, rewrite: shorterLimits }));
      const env = { DATABASE_URL: database.url, USAGE_EXPORT_KEY: lab.keyOf(who) };
      const program = opened.use(startProgram(args, { env, cwd: folder, timeoutMs }));
      return { who, program, database, startedAt: performance.now(), command: args.join(" ") };
    },
    async end(running) {
      const ended = await endOf(running);
      const status = await statuses(db, filters);
      const end = { ...ended, notCompleteAfter: due.filter((slice) => status.get(slice) !== "complete") };
      ends.push(end);
      return end;
    },
    async evidence(recovery, caps) {
      const stored = await readEvidence(db, filters);
      return {
        ...stored,
        exchanges: ownHistory.exchanges,
        due,
        dueBefore: lab.dueBefore,
        programs: [...ends],
        recovery,
        caps,
      };
    },
    leaks(serverLog) {
      const texts = { output: ends.map(({ output }) => output).join("\n") };
      const secrets = [...WHO.map(lab.keyOf), ...passwordsIn(url)];
      return leakViolations(secrets, { texts, folders: [folder], databaseUrl: url, serverLog });
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
  return context;
}

/** Tells the programs apart by their keys. */
function whoAsks({ whoHas }: Lab): ServiceFrontOptions["whoAsks"] {
  return ({ url = "", headers }) => ({ who: whoHas(/(\S+)$/.exec(headers.authorization ?? "")?.[1] ?? ""), url });
}

/** The part of an interruption that is the same for all commands of a lab. */
export function inLab(lab: Lab, caps: Omit<Caps, "exempt">): Pick<Interruption<Case>, "open" | "check"> {
  return {
    open: () => openCase(lab),
    check: async (context, recovery, exempt) => violations(await context.evidence(recovery, { ...caps, exempt })),
  };
}
