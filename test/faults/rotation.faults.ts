// Interrupts a rotation at every request, answer and database message, alone and beside others. One ordinary rotation follows. In the
// end the ledger must know every key that the service made, or flag it as an orphan. At every moment the sinks must hold a key that
// works.

import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import {
  keyEvents,
  ledgerRows,
  openRotationContext,
  PROGRAM,
  type RotationContext,
} from "../cli/rotation/rotation-context.ts";
import { failedRecovery, stackTraces } from "./check.ts";
import { keyViolations } from "./check-keys.ts";
import type { DecideFault, FaultEvent } from "./fault-decision.ts";
import { asViolations, interruptions, openStage, type Stage } from "./interrupt.ts";
import { sweepKinds } from "./sweep.ts";

const POLL_MS = 20;
/** The time limit of a statement, and the steps that follow it. */
const PROGRAM_MS_MAX = 150_000;

type RotationCase = Stage & {
  readonly context: RotationContext;
  /** The file that the command among the sinks writes. */
  readonly stored: string;
  /** The violations that were seen in the sinks so far. */
  readonly seen: ReadonlySet<string>;
};

/** Begins with an active key that is due, a replaced one past its grace period, to be deleted, and a file and a command as sinks. */
async function openCase(): Promise<RotationCase> {
  const opened = new AsyncDisposableStack();
  const decideFault: DecideFault = (event) => stage.decideFault(event);
  const context = opened.use(await openRotationContext({ decideFault, timeoutMs: PROGRAM_MS_MAX }));
  const stored = path.join(context.folder, "stored.key");
  context.allowedFiles.push(stored);
  const store = ["sh", "-c", 'umask 077; cat > "$1.next" && mv "$1.next" "$1"', "sh", stored];
  const seen = new Set<string>();
  const { databaseUrl } = context;
  const stage = openStage({
    opened,
    databaseUrl,
    async start(who, command, url) {
      const config = await readFile(path.join(context.folder, "jobs.config.json"), "utf8");
      const own = path.join(context.folder, `${who}.config.json`);
      await writeFile(own, config.replace(context.proxy.urlOf(PROGRAM), context.proxy.urlOf(who)));
      return context.start([...command, "--config", own], { DATABASE_URL: url });
    },
  });
  const leaks = async (serverLog: boolean) => asViolations(await context.leaks({ serverLog, databaseUrl }));
  await context.configure({ retire: "delete", deliver: [{ file: context.sink }, { command: store }] });
  await context.rotateOrThrow();
  await context.ageKeys(1);
  await context.rotateOrThrow("--now");
  await context.ageKeys(30);
  opened.use(watchSinks(context, stored, seen));
  return Object.assign(stage, { context, stored, seen, leaks });
}

/** Checks all the time that each sink holds a key that works. */
function watchSinks({ sink, emulator }: RotationContext, stored: string, seen: Set<string>): Disposable {
  const timer = setInterval(() => {
    for (const file of [sink, stored]) {
      const works = emulator.secretWorks(readFileSync(file, "utf8").trim());
      if (!works) seen.add(`I7: ${path.basename(file)} held a key that does not work`);
    }
  }, POLL_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function check(rotation: RotationCase, recovery: string | undefined): Promise<readonly string[]> {
  const { ends, seen } = rotation;
  const found = [...seen, ...stackTraces(ends)];
  if (recovery === undefined) return found;
  return [...found, ...failedRecovery({ recovery, programs: ends }), ...(await ledgerViolations(rotation))];
}

/** The violations in the ledger after the recovery run. */
async function ledgerViolations({ context, stored }: RotationCase): Promise<readonly string[]> {
  const rows = await ledgerRows(context.db);
  const [oldest] = rows;
  const events = Map.groupBy(await keyEvents(context.db), ({ intent_id }) => intent_id);
  const evidence = {
    ledger: rows.map(({ api_key_id, intent_id, state }) => ({
      apiKeyId: api_key_id,
      intentId: intent_id,
      state,
      events: events.get(intent_id)?.map(({ event }) => event) ?? [],
    })),
    made: context.emulator
      .keys()
      .filter(({ origin }) => origin === "created")
      .map(({ apiKeyId, comment, state }) => ({ apiKeyId, comment, works: state === "active" })),
    creates: context.proxy.creates.map(({ comment }) => comment),
    // Two keys before the case, and one in it.
    due: 3,
    sinks: [context.sink, stored].map((file) => readFileSync(file, "utf8").trim()),
  };
  const found = keyViolations(evidence);
  return oldest?.state === "retired" ? found : [...found, "I7: the key past its grace was not deleted"];
}

/** The requests that may cost a key if they are interrupted. */
const isCreate = ({ name }: FaultEvent) => name.startsWith("POST");

sweepKinds(
  interruptions({ part: "rotation", file: "rotation.faults.ts", command: ["rotate"], open: openCase, check }),
  // The cases mostly wait for the lease of the killed rotation to end.
  [
    { kind: "kill", ci: [149, 0, 307], all: [8, 23, 31], atOnce: 4, always: isCreate },
    { kind: "kill twice", ci: [211], all: [23], atOnce: 4 },
    { kind: "cut", ci: [191], all: [13, 31, 31], atOnce: 3, always: isCreate },
    { kind: "delay", ci: [0, 0, 251], all: [0, 23, 23], atOnce: 3 },
    { kind: "stop and continue", ci: [211], all: [31, 43], atOnce: 4, always: isCreate },
    { kind: "black hole", ci: [211], all: [19, 61], atOnce: 8, always: isCreate },
    { kind: "SQL error before", ci: [1249], all: [83], atOnce: 3 },
    { kind: "SQL error after", ci: [1249], all: [83], atOnce: 3 },
  ],
);
