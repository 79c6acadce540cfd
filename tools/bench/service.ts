// Starts fast-service.ts in a process of its own, so that it takes no time from its client.

import { spawn } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { z } from "zod";

const FAST_SERVICE = path.join(import.meta.dirname, "fast-service.ts");

const Asked = z.object({ count: z.number(), requests: z.number(), firstMsAgo: z.number() });

export type Service = AsyncDisposable & {
  readonly url: string;
  /**
   * How many breakdowns were requested since the last call of this function, the sum of the `requests` in their answers, and how long ago
   * the first of them was.
   */
  readonly asked: () => Promise<{ readonly count: number; readonly requests: number; readonly firstMsAgo: number }>;
  /** From now on, this percentage of the rows has other numbers. */
  readonly change: (percent: number) => Promise<void>;
};

export async function startService({ rows, latencyMs }: { rows: number; latencyMs: number }): Promise<Service> {
  const child = spawn(process.execPath, [FAST_SERVICE, String(rows), String(latencyMs)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await once(child.stdout, "data");
  const url = String(line).trim();
  return {
    url,
    asked: async () => Asked.parse(await (await fetch(`${url}/asked`)).json()),
    change: async (percent) => {
      await fetch(`${url}/changed?percent=${percent}`, { method: "POST" });
    },
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.kill();
      await ended;
    },
  };
}
