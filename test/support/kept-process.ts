// Starts a program (the keeper) that runs a server for the tests.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";

/** The keeper ends its server when its standard input closes, at the latest with this process. In a process group of its own it gets no Ctrl-C. */
export async function startKept(
  what: string,
  keeperScript: string,
  env: Readonly<Record<string, string | undefined>> = {},
) {
  const options = { detached: true, stdio: "pipe", env: { ...process.env, ...env } } as const;
  const keeper = spawn(process.execPath, [keeperScript], options);
  const ended = once(keeper, "close");
  const reason = text(keeper.stderr);
  const line = await Promise.race([once(createInterface(keeper.stdout), "line"), ended.then(() => undefined)]);
  if (line === undefined) throw new Error(`${what} did not start: ${await reason}`);
  return {
    /** What the keeper wrote when its server was ready. */
    ready: JSON.parse(String(line[0])) as unknown,
    stop: async () => {
      keeper.stdin.end();
      await ended;
    },
  };
}
