// A Postgres server in a container, for machines with a Docker engine.

import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { PostgreSqlContainer } from "@testcontainers/postgresql";
import { getContainerRuntimeClient } from "testcontainers";
import type { PostgresServer } from "./postgres-server.ts";
import { postgresFlags } from "./postgres-settings.ts";

export async function startContainer(image: string): Promise<PostgresServer> {
  const folder = await mkdtemp(path.join(tmpdir(), "usage-export-postgres-"));
  const logFile = path.join(folder, "server.log");
  const removeFolder = () => rm(folder, { recursive: true });
  try {
    const container = await new PostgreSqlContainer(image)
      .withPassword(randomBytes(16).toString("hex"))
      .withCommand(["postgres", ...postgresFlags(process.env.TZ)])
      // The package's own check puts the password on a command line, where the search for leaks finds it.
      .withHealthCheck({
        test: ["CMD-SHELL", "pg_isready --host 127.0.0.1"],
        interval: 250,
        timeout: 1_000,
        retries: 240,
      })
      .withLogConsumer((stream) => stream.pipe(createWriteStream(logFile)))
      .start();
    return {
      name: `${image} in a container`,
      url: container.getConnectionUri(),
      logFile,
      stop: async () => {
        await container.stop();
        await removeFolder();
      },
    };
  } catch (cause) {
    await removeFolder();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${image} did not start in a container: ${reason}`, { cause });
  }
}

export async function dockerAnswers(): Promise<boolean> {
  return getContainerRuntimeClient().then(
    () => true,
    () => false,
  );
}
