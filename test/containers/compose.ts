// Runs docker-compose.yml on this machine's engine, as a Compose project of its own beside one that a person may have running.

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import path from "node:path";
import { promisify } from "node:util";

const ROOT = path.join(import.meta.dirname, "../..");
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

export async function openTrial(profile: string, password: string, programPassword: string) {
  const env = {
    ...process.env,
    ...{ COMPOSE_PROJECT_NAME: `usage-export-${randomBytes(4).toString("hex")}`, COMPOSE_PROFILES: profile },
    ...{ POSTGRES_PASSWORD: password, PROGRAM_PASSWORD: programPassword },
    // Any free port.
    ...{ POSTGRES_PORT: "0", MONITOR_PORT: "0" },
  };
  const docker = (...args: readonly string[]) => run("docker", args, env);
  const [program, ...words] = await composeCommand(env);
  /** What `docker compose`, or the older `docker-compose`, writes to standard output. */
  const compose = (...args: readonly string[]) => run(program, [...words, ...args], env);
  return {
    compose,
    docker,
    containerOf: async (service: string) => (await compose("ps", "--all", "--quiet", service)).trim(),
    /** The result of a query, with one line for each row. */
    query: async (statement: string) =>
      (await compose("exec", "-T", "postgres", "psql", "-U", "usage_export", "-Atc", statement)).trim(),
  };
}

async function composeCommand(env: NodeJS.ProcessEnv): Promise<readonly [string, ...string[]]> {
  try {
    await run("docker", ["version"], env);
    const isPlugin = await run("docker", ["compose", "version"], env).then(
      () => true,
      () => false,
    );
    if (isPlugin) return ["docker", "compose"];
    await run("docker-compose", ["version"], env);
    return ["docker-compose"];
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`these tests need a Docker engine that answers, and compose: ${reason}`, { cause });
  }
}

/** Rejects with what the program wrote to standard error, unless it ends with 0. */
async function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  return (await promisify(execFile)(program, args, { cwd: ROOT, env, maxBuffer: OUTPUT_BYTES_MAX })).stdout;
}
