// Runs the whole program as a user would: in a process of its own, with a clean environment. It ends with the tests.

import { spawn, spawnSync } from "node:child_process";
import { EventEmitter, once } from "node:events";
import path from "node:path";
import { PROGRAM_MS_MAX } from "./limits.ts";

const ROOT = path.join(import.meta.dirname, "../..");

/** The program that tests run: the one that global-setup.ts built, or with TEST_PROGRAM=src/main.ts the sources, to debug them. */
export const MAIN = path.resolve(ROOT, process.env.TEST_PROGRAM ?? "src/main.ts");

/** What users of that program type before a command's name. */
export const COMMAND = MAIN.endsWith(".ts") ? "npm run usage-export --" : "usage-export";

export type ProgramOptions = {
  /** The whole environment, except PATH, HOME and TZ. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** After this time the program is killed. */
  readonly timeoutMs?: number;
  readonly stdin?: string;
  /** Runs the program in a PID namespace of its own, as in a container, where its process id is 1. Only SIGKILL reaches it. */
  readonly pidNamespace?: boolean;
};

export type ProgramResult = {
  /** null if a signal ended the program. */
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
};

const NEW_PID_NAMESPACE = [
  "unshare",
  ...(process.getuid?.() === 0 ? [] : ["--user", "--map-root-user"]),
  ...["--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"],
];

/** Whether this user may create PID namespaces. In CI root must be able to, so there this throws. */
export function hasPidNamespaces(): boolean {
  const [command = "", ...args] = [...NEW_PID_NAMESPACE, "true"];
  const { status, stderr, error } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0 && process.env.CI && process.getuid?.() === 0) {
    throw new Error(`expected "${NEW_PID_NAMESPACE.join(" ")}" to work for root: ${error?.message ?? stderr}`);
  }
  return status === 0;
}

export type Program = AsyncDisposable & {
  readonly pid: number | undefined;
  /** Waits for a line with the text in either output, and returns it. Rejects if the program ends without it. */
  readonly waitFor: (text: string) => Promise<string>;
  /** How many times the text is in either output so far. */
  readonly count: (text: string) => number;
  readonly kill: (signal: NodeJS.Signals) => void;
  /** Rejects if the program was killed after its time limit. */
  readonly ended: Promise<ProgramResult>;
};

/** To be used with `await using`, so that the program ends with the test. */
export function startProgram(args: readonly string[], options: ProgramOptions): Program {
  return startScript(MAIN, args, options);
}

/** The same for another script. */
export function startScript(script: string, args: readonly string[], options: ProgramOptions): Program {
  const { env, cwd, timeoutMs = PROGRAM_MS_MAX, stdin = "" } = options;
  const [command = "", ...before] = [...(options.pidNamespace ? NEW_PID_NAMESPACE : []), process.execPath];
  const child = spawn(command, [...before, script, ...args], { cwd, env: { ...inheritedEnv(), ...env } });
  const kill = (signal: NodeJS.Signals): void => void child.kill(signal);
  const detach = endWithThisProcess(() => kill("SIGKILL"));
  const output = openOutput();
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => output.add(name, text));
  }
  child.on("close", output.close);
  // A program that ends before it has read its input breaks the pipe. Its result is the better error.
  child.stdin.on("error", () => {}).end(stdin);

  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    kill("SIGKILL");
  }, timeoutMs);
  const closed = once(child, "close").finally(() => {
    clearTimeout(limit);
    detach();
  });
  const ended = closed.then(() => {
    const { stdout, stderr } = output.texts;
    if (isLate) throw new Error(`the program had to be killed after ${timeoutMs} ms; it wrote:\n${stdout}${stderr}`);
    return { status: child.exitCode, stdout, stderr };
  });
  // A test that only waits for a line does not handle this rejection.
  ended.catch(() => {});

  const end = async () => {
    kill("SIGKILL");
    await closed;
  };
  const { waitFor, count } = output;
  return { pid: child.pid, waitFor, count, kill, ended, [Symbol.asyncDispose]: end };
}

/** What a program has written so far, and the wait for a line of it. */
export function openOutput() {
  const texts = { stdout: "", stderr: "" };
  const news = new EventEmitter();
  let closed = false;
  const add = (name: keyof typeof texts, text: string) => {
    texts[name] += text;
    news.emit("news");
  };
  const close = () => {
    closed = true;
    news.emit("news");
  };
  async function waitFor(text: string): Promise<string> {
    for (;;) {
      const wholeLines = [texts.stdout, texts.stderr].flatMap((written) => written.split("\n").slice(0, -1));
      const found = wholeLines.find((line) => line.includes(text));
      if (found !== undefined) return found;
      if (closed) throw new Error(`the program ended without "${text}"; it wrote:\n${texts.stdout}${texts.stderr}`);
      await once(news, "news");
    }
  }
  const count = (text: string) => `${texts.stdout}${texts.stderr}`.split(text).length - 1;
  return { texts, add, close, waitFor, count };
}

function inheritedEnv(): Readonly<Record<string, string | undefined>> {
  const { PATH, HOME, TZ } = process.env;
  return { PATH, HOME, ...(TZ === undefined ? {} : { TZ }) };
}

/** Calls `end` when this process exits or gets SIGTERM, by which Vitest ends a hanging test. Returns the function that undoes this. */
function endWithThisProcess(end: () => void): () => void {
  const onSignal = () => {
    end();
    process.kill(process.pid, "SIGTERM");
  };
  process.once("exit", end);
  process.once("SIGTERM", onSignal);
  return () => {
    process.removeListener("exit", end);
    process.removeListener("SIGTERM", onSignal);
  };
}
