// Interrupts a command at one of its events, and then runs it once without a fault. For commands that end by themselves.

import { findLeaks, type Leak, type Places } from "../support/leaks.ts";
import type { Program } from "../support/program.ts";
import type { ProgramEnd } from "./case-evidence.ts";
import { type CasePlan, exemptOf, faultOf, planOf, REPLICAS, SECOND, VICTIM } from "./case-plan.ts";
import { arm, type DecideFault, type FaultEvent, PASS } from "./fault-decision.ts";
import { type PostgresFront, startPostgresFront } from "./postgres-front.ts";
import { type Outcome, pointsAmong, reportHighest, type Swept } from "./sweep.ts";

export type Running = {
  readonly who: string;
  readonly program: Program;
  /** The front before the database for this program alone. */
  readonly database: PostgresFront;
  readonly startedAt: number;
  readonly command: string;
};

/** The environment of one case: its programs run behind fronts, and share nothing with other cases. */
export type Stage = AsyncDisposable & {
  /** Called at every event. A case sets it to the function that injects its fault. */
  decideFault: DecideFault;
  /** How the programs have ended so far. */
  readonly ends: readonly ProgramEnd[];
  readonly start: (who: string, args: readonly string[]) => Promise<Running>;
  /** Waits until the program has ended. */
  readonly end: (running: Running) => Promise<ProgramEnd>;
  /** The leaks so far. `log`: whether the log of the database server, which is long, is searched too. */
  readonly leaks: (log: boolean) => Promise<readonly string[]>;
};

export type Interruption<S extends Stage> = {
  readonly part: string;
  readonly file: string;
  readonly command: readonly string[];
  /** What a person runs after an error of the database if `command` does not repeat the work that the database refused. */
  readonly afterRefusal?: readonly string[];
  readonly open: () => Promise<S>;
  /** The violations. Called before the recovery run (`recovery` is undefined) and after it (`recovery` is its name). */
  readonly check: (stage: S, recovery: string | undefined, exempt: ReadonlySet<string>) => Promise<readonly string[]>;
  /** Called before the recovery run. Returns a check of what only this command promises, which is called after that run. */
  readonly prepareOwnCheck?: (stage: S) => Promise<() => readonly string[]>;
};

type StageOptions = {
  readonly opened: AsyncDisposableStack;
  readonly databaseUrl: string;
  /** Starts a program with this address of the database. */
  readonly start: (who: string, args: readonly string[], databaseUrl: string) => Program | Promise<Program>;
  /** More that is known when a program has ended. */
  readonly afterEnd?: () => Promise<Partial<ProgramEnd>>;
};

/** Makes the part of a stage that is the same for all commands: each program is behind a front before the database. */
export function openStage({ opened, databaseUrl, start, afterEnd = async () => ({}) }: StageOptions) {
  const ends: ProgramEnd[] = [];
  const stage: Omit<Stage, "leaks"> = {
    decideFault: () => PASS,
    ends,
    async start(who, args) {
      const decideFault: DecideFault = (event) => stage.decideFault(event);
      const database = opened.use(await startPostgresFront(databaseUrl, { who, decideFault, rewrite: shorterLimits }));
      const program = opened.use(await start(who, args, database.url));
      return { who, program, database, startedAt: performance.now(), command: args.join(" ") };
    },
    async end({ who, program, startedAt, command }) {
      // A program that had to be killed at its time limit gets the status -1.
      const result = await program.ended.catch((error: Error) => ({ status: -1, stdout: "", stderr: error.message }));
      const { status, stdout, stderr } = result;
      const end = { who, command, status, output: stdout + stderr, startedAt, ...(await afterEnd()) };
      ends.push(end);
      return end;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
  return stage;
}

/** Shortens how long a stopped program holds its locks. `migrate` loads files within its transaction, which takes less than 6 s. */
function shorterLimits(text: string): string {
  return text.replace("'idle_in_transaction_session_timeout', '60s'", "'idle_in_transaction_session_timeout', '6s'");
}

/** Searches the output of the programs, and other places, for secrets. */
export async function leakViolations(secrets: readonly string[], ends: readonly ProgramEnd[], places: Places) {
  const texts = { output: ends.map(({ output }) => output).join("\n") };
  return asViolations(await findLeaks(secrets, { texts, ...places }));
}

export function asViolations(leaks: readonly Leak[]): readonly string[] {
  return leaks.map((leak) => `I6: a secret leaked: ${JSON.stringify(leak)}`);
}

/** The name of the program that runs after the faults have stopped, and must repair everything. */
export const RECOVERY = "recovery";

/** At every n-th point the log of the database server is searched for secrets. */
const LOG_EVERY = 20;

export function isLogSearched({ point }: CasePlan): boolean {
  return point % LOG_EVERY === 1;
}

/** The cases of an interruption, as sweepKinds needs them. */
export function interruptions<S extends Stage>(interruption: Interruption<S>): Swept {
  const { part, file } = interruption;
  return { part, file, points: calibration(interruption), run: (name) => interrupted(interruption, name) };
}

async function interrupted<S extends Stage>(interruption: Interruption<S>, name: string): Promise<Outcome> {
  const { command, afterRefusal, open, check, prepareOwnCheck = async () => () => [] } = interruption;
  const plan = planOf(name);
  await using stage = await open();
  const { fault, running: victim } = await startArmed(stage, VICTIM, plan, plan.point, command);
  const others = await Promise.all(REPLICAS.slice(1, plan.replicas).map((who) => stage.start(who, command)));
  if (plan.kind === "stop and continue") await wakeAfterAnother(stage, victim, command, fault.happened);
  await Promise.all([victim, ...others].map(stage.end));
  const hit = plan.secondPoint === undefined ? fault.hit : await killSecond(stage, command, plan, plan.secondPoint);
  stage.decideFault = () => PASS;

  const exempt = exemptOf(plan.kind);
  const before = await check(stage, undefined, exempt);
  const ownCheck = await prepareOwnCheck(stage);
  let recoveryCommand = command;
  if (plan.sqlstate !== undefined && afterRefusal) {
    const { status } = await stage.end(await stage.start(SECOND, command));
    if (status !== 0) recoveryCommand = afterRefusal;
  }
  const startedMs = performance.now();
  await stage.end(await stage.start(RECOVERY, recoveryCommand));
  if (plan.kind.startsWith("kill")) reportRecovery(performance.now() - startedMs, interruption.part, name);
  const after = await check(stage, RECOVERY, exempt);
  return { hit: hit(), violations: [...before, ...after, ...ownCheck(), ...(await stage.leaks(isLogSearched(plan)))] };
}

export function reportRecovery(ms: number, part: string, name: string): void {
  reportHighest("longest recovery after SIGKILL", ms, `${part}: ${name}`);
}

/** Kills the following run too, at one of its events. */
async function killSecond(stage: Stage, command: readonly string[], plan: CasePlan, point: number) {
  const { fault, running } = await startArmed(stage, SECOND, plan, point, command);
  await stage.end(running);
  return fault.hit;
}

/** Starts a program to which the fault of the plan happens at one of its events. */
export async function startArmed(stage: Stage, who: string, plan: CasePlan, point: number, args: readonly string[]) {
  let running: Running | undefined;
  const fault = arm({ who, point, ...faultOf(plan, () => running) });
  stage.decideFault = fault.decideFault;
  running = await stage.start(who, args);
  return { fault, running };
}

/** Lets the stopped program continue after another run has done everything, which it must not undo. */
async function wakeAfterAnother(
  stage: Stage,
  victim: Running,
  command: readonly string[],
  happened: Promise<void>,
): Promise<void> {
  const over = victim.program.ended.then(() => "over");
  if ((await Promise.race([happened.then(() => "stopped"), over])) === "over") return;
  await stage.end(await stage.start(SECOND, command));
  victim.program.kill("SIGCONT");
}

/** Records the events of a program without a fault, beside others like it. */
function calibration<S extends Stage>({ open, command }: Interruption<S>): Swept["points"] {
  return pointsAmong(async (replicas) => {
    await using stage = await open();
    const events = recorded(stage);
    const running = await Promise.all(REPLICAS.slice(0, replicas).map((who) => stage.start(who, command)));
    for (const { status, output } of await Promise.all(running.map(stage.end))) {
      if (status !== 0) throw new Error(`the run that nothing happens to ended with ${status}: ${output}`);
    }
    return events;
  });
}

/** Records all events of the victim from now on. */
export function recorded(stage: Stage): readonly FaultEvent[] {
  const events: FaultEvent[] = [];
  stage.decideFault = (event) => {
    if (event.who === VICTIM) events.push(event);
    return PASS;
  };
  return events;
}
