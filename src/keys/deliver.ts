// Delivers a key where its readers look. Safe to repeat: the same key again is the same delivery.

import type { Secret } from "../secret.ts";
import { runKeyCommand, testKeyCommand } from "./key-command.ts";
import { keyFileFault, testKeyFile, writeKeyFile } from "./key-file.ts";
import type { LedgerKey } from "./ledger.ts";
import { type Sink, sinkId } from "./policy.ts";

/** Throws `delivery` where the sink would not take a key now: known before a key is made, no key is made for nothing. */
export async function testSink(sink: Sink): Promise<void> {
  await (sink.kind === "file" ? testKeyFile(sink.path) : testKeyCommand(sink.command[0] ?? ""));
}

/** Throws `delivery`; the sink then has what it had. `scrub` hides what a command must not say. */
export async function deliverKey(
  sink: Sink,
  key: Secret,
  apiKeyId: string,
  scrub: (text: string) => string,
): Promise<void> {
  await (sink.kind === "file" ? writeKeyFile(sink.path, key) : runKeyCommand(sink, key, apiKeyId, scrub));
}

/**
 * The files that should hold the key and do not, by the ids of their sinks, with what is wrong. What a command did with it
 * nobody can see. Without the key's secret only whether they are there is told.
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
    const fault = await keyFileFault(sink.path, secret);
    if (fault !== undefined) stale.set(id, `the delivered file ${sink.path} ${fault}`);
  }
  return stale;
}
