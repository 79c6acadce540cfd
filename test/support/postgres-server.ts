// Finds the Postgres server that a run of the suite uses: one that is given, a container, or binaries from npm.

import { getContainerRuntimeClient } from "testcontainers";
import { startContainer } from "./postgres-container.ts";
import { startEmbedded } from "./postgres-embedded.ts";

export type PostgresServer = {
  /** For a person: what the suite runs on. */
  readonly name: string;
  /** Connects as a role that may create databases. */
  readonly url: string;
  /** What the server writes down, with every statement and its parameters. A server that is given keeps its own. */
  readonly logFile: string | undefined;
  readonly stop: () => Promise<void>;
};

const ENGINES = ["url", "testcontainers", "embedded"] as const;
type Engine = (typeof ENGINES)[number];

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * TEST_ENGINE asks for one kind, and then its failure is the run's failure. Without it, a Docker engine that cannot start
 * the container (no registry, no image) is passed over, in words, for the embedded server.
 */
export async function startServer(env: Environment, say: (line: string) => void): Promise<PostgresServer> {
  const image = env.POSTGRES_IMAGE ?? "postgres:17-alpine";
  switch (engineOf(env)) {
    case "url":
      return givenServer(env.TEST_DATABASE_URL);
    case "testcontainers":
      return startContainer(image);
    case "embedded":
      return startEmbedded();
    case undefined:
      if (!(await dockerAnswers())) return startEmbedded();
      try {
        return await startContainer(image);
      } catch (error) {
        say(`a Docker engine answers, but ${error instanceof Error ? error.message : error}`);
        return startEmbedded();
      }
  }
}

/** The kind of server to use, or undefined for the best there is on this machine. */
export function engineOf(env: Environment): Engine | undefined {
  if (env.TEST_ENGINE === undefined) return env.TEST_DATABASE_URL === undefined ? undefined : "url";
  const engine = ENGINES.find((known) => known === env.TEST_ENGINE);
  if (engine === undefined) {
    throw new Error(`TEST_ENGINE: expected one of ${ENGINES.join(", ")}, got "${env.TEST_ENGINE}"`);
  }
  return engine;
}

function givenServer(url: string | undefined): PostgresServer {
  if (url === undefined)
    throw new Error("TEST_ENGINE is url: set TEST_DATABASE_URL to a server to create databases on");
  return { name: "the server at TEST_DATABASE_URL", url, logFile: undefined, stop: async () => {} };
}

async function dockerAnswers(): Promise<boolean> {
  return getContainerRuntimeClient().then(
    () => true,
    () => false,
  );
}
