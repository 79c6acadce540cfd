// Keys that commands print. A key is kept in memory, and its command runs again when the service refuses the key. Nothing that a command
// prints is shown or logged: it may be the key.

import { batched } from "../async.ts";
import { isProgram, runCommand } from "../command.ts";
import type { CommandReference } from "../config/key-source.ts";
import { type neededKeys, problemsByCause, secretOf } from "../config/secrets.ts";
import { AppError } from "../errors.ts";
import type { Scrubber, Secret } from "../secret.ts";

export type KeyCommands = {
  /** The key that the command prints. Projects with the same command share one run of it. */
  readonly read: (reference: CommandReference) => Promise<Secret>;
  /** Called when the service refused the key: the next `read` runs the command again, though not twice in a minute. */
  readonly refused: (reference: CommandReference, key: Secret) => void;
};

/** What the commands of a process have printed, by command. A worker keeps it when it takes up another configuration. */
export type PrintedKeys = Map<string, Answer>;

type KeyCommandDeps = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly scrubber: Pick<Scrubber, "add">;
  readonly signal: AbortSignal;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
};

/** How long a command is not run again that failed, or whose key the service refuses: otherwise each call of an export would run it. */
const RERUN_MS_MIN = 60_000;
/** More commands at once would slow down this machine and the vault that they ask. */
const CONCURRENT_MAX = 4;

type Answer = {
  readonly key: Promise<Secret>;
  /** Set when the command has ended and printed a key. */
  printed?: Secret;
  /** It failed, or the service refused its key. */
  isStale: boolean;
  /** When the command was asked for, and later when it ended. */
  atMs: number;
};

export function openKeyCommands(
  { env, scrubber, signal, now = () => performance.now() }: KeyCommandDeps,
  answers: PrintedKeys = new Map(),
): KeyCommands {
  const run = batched((references: readonly CommandReference[]) => Promise.all(references.map(runKeyCommand)), {
    weightMax: 1,
    weightOf: () => 1,
    concurrency: CONCURRENT_MAX,
  });

  async function runKeyCommand(reference: CommandReference): Promise<Secret> {
    const { command, timeoutSeconds, variables } = reference;
    const given = Object.fromEntries(variables.map((name) => [name, env[name]]));
    const settings = { input: "", variables: given, timeoutSeconds, signal };
    const { failure, stdout } = await runCommand(command, settings);
    const source = `the key command ${JSON.stringify(command[0] ?? "")}`;
    // As a service that does not answer: a vault may be back in a minute.
    if (failure !== undefined) {
      const hint = "what it printed is not shown, as it may hold a key; run it by hand to see why";
      throw new AppError("unavailable", `${source} ${failure} (${hint})`);
    }
    if (stdout.trim() === "") throw new AppError("unavailable", `${source} printed nothing: expected the API key`);
    return scrubber.add(secretOf("key", stdout.trim(), `the output of ${source}`));
  }

  return {
    async read(reference) {
      const id = JSON.stringify(reference);
      const before = answers.get(id);
      if (before && !(before.isStale && now() - before.atMs >= RERUN_MS_MIN)) return before.key;
      const answer: Answer = { key: run(reference), isStale: false, atMs: now() };
      answers.set(id, answer);
      try {
        answer.printed = await answer.key;
        return answer.printed;
      } catch (error) {
        answer.isStale = true;
        // A command that was ended with the work that needed it says nothing about the next one.
        if (signal.aborted && answers.get(id) === answer) answers.delete(id);
        throw error;
      } finally {
        answer.atMs = now();
      }
    },
    refused(reference, key) {
      const answer = answers.get(JSON.stringify(reference));
      if (answer?.printed?.equals(key)) answer.isStale = true;
    },
  };
}

/** What is wrong with the programs of the commands. They are not run: with thousands of projects that would take hours. */
export async function keyCommandProblems(needed: ReturnType<typeof neededKeys>): Promise<string[]> {
  const commands = needed.flatMap(({ path, reference }) =>
    reference.kind === "command" ? [{ path: [...path, "command", 0], program: reference.command[0] ?? "" }] : [],
  );
  const missing = new Set<string>();
  for (const program of new Set(commands.map((one) => one.program))) {
    if (!(await isProgram(program))) missing.add(program);
  }
  return problemsByCause(
    commands
      .filter(({ program }) => missing.has(program))
      .map(({ path, program }) => ({
        path,
        message: `the program ${JSON.stringify(program)} does not exist, or may not be run`,
      })),
  );
}
