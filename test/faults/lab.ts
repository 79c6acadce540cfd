// The environment in which exports and workers are interrupted. All cases share an emulated service and a baseline database, which the
// commands in `before` fill. Each case has a copy of that database, a front (a proxy, see fault-decision.ts) before the service, and
// one before the database for each program.

import { randomBytes } from "node:crypto";
import { mkdtempDisposable, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll } from "vitest";
import { type Database, openPostgres } from "../../src/db/connection/database.ts";
import { addDays, dayOf } from "../../src/emulator/days.ts";
import { copyDatabase, type DatabaseUrls } from "../support/database.ts";
import { startEmulator } from "../support/emulator.ts";
import { passwordsIn } from "../support/leaks.ts";
import { startProgram } from "../support/program.ts";
import { type Caps, type Evidence, sliceName } from "./case-evidence.ts";
import { REPLICAS, SECOND } from "./case-plan.ts";
import { violations } from "./check.ts";
import { readEvidence, statuses } from "./evidence.ts";
import type { DecideFault } from "./fault-decision.ts";
import { type History, historyAfter, recorderFor } from "./history.ts";
import { type Interruption, leakViolations, openStage, RECOVERY, type Stage } from "./interrupt.ts";
import { type ServiceFrontOptions, startServiceFront } from "./service-front.ts";

const PROJECT_ID = "project-1";

type Fields = Readonly<Record<string, unknown>>;
type Filter = { readonly name: string } & Readonly<Partial<Record<"features" | "dimensions", Record<string, string>>>>;

export type LabOptions = {
  /** How many days, up to yesterday, are due for each grouping and filter. */
  readonly days: number;
  readonly groupings: readonly string[];
  readonly filters?: readonly Filter[];
  readonly caps: Omit<Caps, "exempt">;
  /** Commands that run once, before all cases. They must leave work for the cases. */
  readonly before?: readonly (readonly string[])[];
  /** `job` is put into the export, `rest` into the configuration. */
  readonly job?: Fields;
  readonly rest?: Fields;
  readonly requestsPerSecond?: number;
};

export const daysAgo = (days: number) => addDays(dayOf(new Date()), -days);

function configOf(options: LabOptions, baseUrl: string): Fields {
  const { days, groupings, filters = ALL, caps, job, rest, requestsPerSecond = 100 } = options;
  const limits = { requestsPerSecond, maxConcurrent: caps.concurrent, timeoutSeconds: 2 };
  return {
    service: { baseUrl, dialect: "interface", ...limits },
    projects: [{ id: PROJECT_ID, name: "production", key: { env: "USAGE_EXPORT_KEY" } }],
    exports: [
      {
        ...{ name: "nightly", schedule: "15 2 * * *", projects: ["production"], window: { days }, groupings, filters },
        // The requests of this check would add points to the sweep.
        checkFeatures: "off",
        ...job,
      },
    ],
    ...rest,
  };
}

const ALL: readonly Filter[] = [{ name: "all" }];

type Lab = Awaited<ReturnType<typeof openLab>>;

const PROGRAM_NAMES = ["first", ...REPLICAS, SECOND, RECOVERY];

export async function openLab(options: LabOptions) {
  const opened = new AsyncDisposableStack();
  const keys = new Map(PROGRAM_NAMES.map((who) => [who, randomBytes(20).toString("hex")]));
  const consoleKeys = [...keys.values()].map((secret) => ({ secret, projectId: PROJECT_ID, scopes: ["member"] }));
  const emulator = opened.use(await startEmulator({ consoleKeys }));
  const baseline = opened.use(await copyDatabase());
  const filters = Object.fromEntries(
    (options.filters ?? ALL).map(({ name, features, dimensions }) => [
      name,
      new URLSearchParams({ ...features, ...dimensions }).toString(),
    ]),
  );
  const days = Array.from({ length: options.days }, (_, i) => daysAgo(options.days - i));
  const lab = {
    options,
    filters,
    /** The names of all slices that must be there in the end. */
    due: Object.values(filters).flatMap((conditions) =>
      options.groupings.flatMap((grouping) => days.map((day) => sliceName(`${grouping} / ${conditions}`, day))),
    ),
    emulator,
    baseline,
    history: historyAfter(),
    /** The slices that were due before the first case. */
    dueBefore: [] as string[],
    /** A key for each program of a case, so that the front can tell who asks. */
    keyOf: (who: string) => keys.get(who) ?? "",
    whoHas: (key: string) => [...keys].find(([, secret]) => secret === key)?.[0] ?? "nobody",
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
  await using context = await openCase(lab, { database: baseline, history: lab.history });
  for (const args of options.before ?? []) {
    const { status, output } = await context.end(await context.start("first", args));
    if (status !== 0) throw new Error(`${args.join(" ")}, before all cases, ended with ${status}: ${output}`);
  }
  lab.dueBefore.push(...(await statuses(context.db, filters)).keys());
  afterAll(() => lab[Symbol.asyncDispose]());
  return lab;
}

export type Case = Stage & {
  readonly db: Database;
  readonly history: History;
  readonly evidence: (recovery: string | undefined, exempt: ReadonlySet<string>) => Promise<Evidence>;
};

type CaseOptions = {
  /** Used itself, instead of a copy of the baseline. */
  readonly database?: DatabaseUrls;
  readonly history?: History;
  /** A program is killed after this time. */
  readonly timeoutMs?: number;
};

/** Behind a front that passes nothing on, each step of a program takes as long as the time limit of a statement. */
const PROGRAM_MS_MAX = 180_000;

export async function openCase(
  lab: Lab,
  { database, history, timeoutMs = PROGRAM_MS_MAX }: CaseOptions = {},
): Promise<Case> {
  const opened = new AsyncDisposableStack();
  const { filters, due, dueBefore } = lab;
  const { directUrl: url } = database ?? opened.use(await copyDatabase(lab.baseline));
  const db = openPostgres(url);
  opened.defer(() => db.destroy());
  const { path: folder } = opened.use(await mkdtempDisposable(path.join(tmpdir(), "usage-export-fault-")));
  const decideFault: DecideFault = (event) => context.decideFault(event);
  const ownHistory = history ?? historyAfter(lab.history);
  const front = opened.use(
    await startServiceFront(lab.emulator.url, { decideFault, watch: recorderFor(ownHistory), whoAsks: whoAsks(lab) }),
  );
  await writeFile(path.join(folder, "jobs.config.json"), JSON.stringify(configOf(lab.options, front.url)));

  const stage = openStage({
    opened,
    databaseUrl: url,
    start(who, args, databaseUrl) {
      const env = { DATABASE_URL: databaseUrl, USAGE_EXPORT_KEY: lab.keyOf(who) };
      return startProgram(args, { env, cwd: folder, timeoutMs });
    },
    async afterEnd() {
      const status = await statuses(db, filters);
      return { notCompleteAfter: due.filter((slice) => status.get(slice) !== "complete") };
    },
  });
  const { ends } = stage;
  const context: Case = Object.assign(stage, {
    db,
    history: ownHistory,
    async evidence(recovery: string | undefined, exempt: ReadonlySet<string>) {
      const stored = await readEvidence(db, filters);
      const { exchanges } = ownHistory;
      const caps = { ...lab.options.caps, exempt };
      return { ...stored, exchanges, due, dueBefore, programs: [...ends], recovery, caps };
    },
    leaks(serverLog: boolean) {
      const secrets = [...PROGRAM_NAMES.map(lab.keyOf), ...passwordsIn(url)];
      return leakViolations(secrets, ends, { folders: [folder], databaseUrl: url, serverLog });
    },
  });
  return context;
}

/** Tells the programs apart by their keys. */
function whoAsks({ whoHas }: Lab): ServiceFrontOptions["whoAsks"] {
  return ({ url = "", headers }) => ({ who: whoHas(/(\S+)$/.exec(headers.authorization ?? "")?.[1] ?? ""), url });
}

/** The part of an interruption that is the same for all commands of a lab. */
export function inLab(lab: Lab): Pick<Interruption<Case>, "open" | "check"> {
  return {
    open: () => openCase(lab),
    check: async (context, recovery, exempt) => violations(await context.evidence(recovery, exempt)),
  };
}
