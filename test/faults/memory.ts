// The peak memory of a process, as the operating system counts it.

import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const EVERY_MS = 20;

export type Peak = { readonly baseKib: number; readonly peakKib: number };

/** Watches from the moment `from` until the process is gone. The system keeps the peak, so none is missed between two readings. */
export async function peakMemory(pid: number, from: Promise<unknown>): Promise<Peak> {
  await from;
  const baseKib = (await highestKib(pid)) ?? 0;
  let peakKib = baseKib;
  for (;;) {
    const nowKib = await highestKib(pid);
    if (nowKib === undefined) return { baseKib, peakKib };
    peakKib = Math.max(peakKib, nowKib);
    await sleep(EVERY_MS);
  }
}

async function highestKib(pid: number): Promise<number | undefined> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1];
  return kib === undefined ? undefined : Number(kib);
}
