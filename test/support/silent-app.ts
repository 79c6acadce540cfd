// An App for tests of functions that commands call. It logs and writes nothing, and is never stopped.

import { pino } from "pino";
import type { App } from "../../src/app.ts";
import { Scrubber } from "../../src/secret.ts";

export function silentApp({ env = {}, scrubber = new Scrubber() }: Partial<Pick<App, "env" | "scrubber">> = {}): App {
  return {
    env,
    configPath: "jobs.config.json",
    signal: new AbortController().signal,
    scrubber,
    log: pino({ level: "silent" }),
    actor: "the test",
    write: () => {},
    hasTerminal: false,
  };
}
