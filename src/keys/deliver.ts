// Delivers a key where its readers look. Safe to repeat: the same key again is the same delivery.

import type { Secret } from "../secret.ts";
import { runKeyCommand, testKeyCommand } from "./key-command.ts";
import { testKeyFile, writeKeyFile } from "./key-file.ts";
import type { Sink } from "./policy.ts";

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
