// Delivers a key where its readers look. Safe to repeat: the same key again is the same delivery.

import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { runKeyCommand, testKeyCommand } from "./key-command.ts";
import { keyFileFault, testKeyFile, writeKeyFile } from "./key-file.ts";
import type { LedgerKey } from "./ledger.ts";
import { type Sink, sinkId } from "./policy.ts";

/** Throws `delivery` where the sink would not take a key now: known before a key is made, no key is made for nothing. */
export async function testSink(sink: Sink): Promise<void> {
  if (sink.kind === "command") return testKeyCommand(sink.command[0] ?? "");
  await withinLimit(testKeyFile(sink.path), sink.path);
}

/** Throws `delivery`; the sink then has what it had. `scrub` hides what a command must not say. */
export async function deliverKey(
  sink: Sink,
  key: Secret,
  apiKeyId: string,
  scrub: (text: string) => string,
): Promise<void> {
  if (sink.kind === "command") return runKeyCommand(sink, key, apiKeyId, scrub);
  await withinLimit(writeKeyFile(sink.path, key), sink.path);
}

/** Limit for a file: a network share whose server is gone never answers. */
const FILE_MS_MAX = 20_000;

const SILENT = `its file system has not answered in ${FILE_MS_MAX / 1000} s`;

async function withinLimit<T>(work: Promise<T>, file: string): Promise<T> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const message = `the key file ${file} can't be reached: ${SILENT}`;
  const timer = setTimeout(() => reject(new AppError("delivery", message)), FILE_MS_MAX);
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The files that should hold the key but do not, by sink id, with what is wrong. What a command did with the key can't be
 * checked. Without the key's secret, only the existence of the files is checked.
 */
export async function staleFiles(
  sinks: readonly Sink[],
  { deliveredTo }: Pick<LedgerKey, "deliveredTo">,
  secret: Secret | undefined,
): Promise<ReadonlyMap<string, string>> {
  const stale = new Map<string, string>();
  for (const sink of sinks) {
    const id = sinkId(sink);
    if (sink.kind !== "file" || !deliveredTo.includes(id)) continue;
    // A share that is gone is a fault of this file, and keeps nobody from the others, or from another key.
    const fault = await withinLimit(keyFileFault(sink.path, secret), sink.path).catch((error: unknown) => {
      if (error instanceof AppError) return `can't be read: ${SILENT}`;
      throw error;
    });
    if (fault !== undefined) stale.set(id, `the delivered file ${sink.path} ${fault}`);
  }
  return stale;
}
