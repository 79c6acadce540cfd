// Delivers a key where its readers look. Safe to repeat: the same key again is the same delivery.

import { constants } from "node:fs";
import { access, mkdir, open, rm, stat } from "node:fs/promises";
import path from "node:path";
import { execa } from "execa";
import writeFileAtomic from "write-file-atomic";
import { AppError } from "../errors.ts";
import { Scrubber, type Secret } from "../secret.ts";
import type { Sink } from "./policy.ts";

const OUTPUT_SHOWN_MAX = 300;

/** Throws `delivery` where the sink would not take a key now: known before a key is made, no key is made for nothing. */
export async function testSink(sink: Sink): Promise<void> {
  await (sink.kind === "file" ? testFile(sink.path) : testCommand(sink.command[0] ?? ""));
}

/** Throws `delivery`; the sink then has what it had. */
export async function deliverKey(sink: Sink, key: Secret, apiKeyId: string): Promise<void> {
  await (sink.kind === "file" ? writeKeyFile(sink.path, key) : runCommand(sink, key, apiKeyId));
}

async function testFile(file: string): Promise<void> {
  const probe = `${file}.probe-${process.pid}`;
  try {
    const existing = await stat(file).catch(() => undefined);
    if (existing && !existing.isFile()) throw new Error("it is not a file");
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    await writeFileAtomic(probe, "", { mode: 0o600 });
    await rm(probe);
  } catch (cause) {
    throw new AppError("delivery", `the key file ${file} can't be written`, { cause });
  }
}

/** A reader sees the old key or the new one, whole, also after the power fails: the rename is on disk before this returns. */
async function writeKeyFile(file: string, key: Secret): Promise<void> {
  try {
    await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
    await writeFileAtomic(file, `${key.reveal()}\n`, { mode: 0o600 });
    const folder = await open(path.dirname(file), "r");
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  } catch (cause) {
    throw new AppError("delivery", `the key file ${file} could not be written`, { cause });
  }
}

async function testCommand(program: string): Promise<void> {
  const places = program.includes("/")
    ? [path.resolve(program)]
    : (process.env.PATH ?? "").split(path.delimiter).map((folder) => path.join(folder, program));
  for (const place of places) {
    const found = await access(place, constants.X_OK)
      .then(() => stat(place))
      .catch(() => undefined);
    if (found?.isFile()) return;
  }
  throw new AppError("delivery", `the command ${JSON.stringify(program)} is not there, or may not be run`);
}

/** The key goes to standard input: arguments and environment stand in the process list. */
async function runCommand(sink: Extract<Sink, { kind: "command" }>, key: Secret, apiKeyId: string): Promise<void> {
  const [program = "", ...args] = sink.command;
  const { PATH, HOME } = process.env;
  const result = await execa(program, args, {
    input: `${key.reveal()}\n`,
    env: { PATH, HOME, USAGE_EXPORT_API_KEY_ID: apiKeyId },
    // The exporter's own environment holds other secrets.
    extendEnv: false,
    timeout: sink.timeoutSeconds * 1000,
    forceKillAfterDelay: 1000,
    all: true,
    maxBuffer: 64 * 1024,
    reject: false,
  });
  if (!result.failed) return;
  const scrubber = new Scrubber();
  scrubber.add(key);
  const output = scrubber
    .scrub(result.all ?? "")
    .replaceAll(/\s+/g, " ")
    .trim()
    .slice(-OUTPUT_SHOWN_MAX);
  const why = result.timedOut
    ? `took longer than ${sink.timeoutSeconds} s`
    : `ended with ${result.signal ?? result.exitCode ?? result.code}`;
  throw new AppError("delivery", `the command ${JSON.stringify(program)} ${why}${output && `: ${output}`}`);
}
