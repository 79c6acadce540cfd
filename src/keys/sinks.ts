// Delivers a key to its sinks: files and commands. Safe to repeat: delivering the same key again changes nothing.

import { randomBytes } from "node:crypto";
import { mkdir, open, realpath, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { isProgram, runCommand } from "../command.ts";
import { AppError, systemCode } from "../errors.ts";
import { readRegularFile, replaceFile, withFileLimit } from "../files.ts";
import type { Secret } from "../secret.ts";
import { type Sink, sinkId } from "./policy.ts";
import type { OpenedKey } from "./rotation-deps.ts";

/** Throws `delivery` if the sink would not accept a key now. Checked before a key is made, so that none is made in vain. */
export async function testSink(sink: Sink): Promise<void> {
  if (sink.kind === "command") return testKeyCommand(sink.command[0] ?? "");
  await withDeliveryLimit(sink.path, () => testKeyFile(sink.path));
}

/** Throws `delivery` if it fails; the sink then keeps its previous content. */
export async function deliverKey(sink: Sink, { apiKeyId, key }: OpenedKey): Promise<void> {
  if (sink.kind === "command") return runKeyCommand(sink, key, apiKeyId);
  await withDeliveryLimit(sink.path, () => writeKeyFile(sink.path, key));
}

const DELIVERY_MS_MAX = 20_000;

async function withDeliveryLimit(file: string, work: () => Promise<void>): Promise<void> {
  await withFileLimit(file, DELIVERY_MS_MAX, work).catch((error: unknown) => {
    if (error instanceof AppError) throw error;
    throw new AppError("delivery", `the key file ${file} can't be reached`, { cause: error });
  });
}

/**
 * The files that should hold the key but do not, by sink id, with what is wrong. What a command did with the key can't be
 * checked. Without the key's secret, only the existence of the files is checked.
 */
export async function staleFiles(
  sinks: readonly Sink[],
  deliveredTo: readonly string[],
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

// A sink that is a file. A reader sees either the whole old key or the whole new one, even after a power failure.

const MODE_FILE = 0o600;
const FOLDER_MODE = 0o700;

/** The name of this program's temporary file beside a key file; nobody chooses such a name by chance. */
function ownFile(target: string, what: string): string {
  return `${target}.usage-export-${what}`;
}

export async function testKeyFile(file: string): Promise<void> {
  try {
    const target = await prepareTarget(file);
    const existing = await stat(target).catch(() => undefined);
    if (existing && !existing.isFile()) throw new Error("it is not a file");
    // A random name, because an existing file beside the key file may belong to anybody.
    const probe = ownFile(target, `${randomBytes(6).toString("hex")}.probe`);
    try {
      await writeFile(probe, "", { flag: "wx", mode: MODE_FILE, flush: true });
    } finally {
      await rm(probe, { force: true });
    }
  } catch (cause) {
    throw new AppError("delivery", `the key file ${file} can't be written`, { cause });
  }
}

/** The temporary file always has the same name, so that the next delivery removes what a crash left. */
export async function writeKeyFile(file: string, key: Secret): Promise<void> {
  try {
    const target = await prepareTarget(file);
    const temporary = ownFile(target, "next");
    await rm(temporary, { force: true });
    await replaceFile(target, [`${key.reveal()}\n`], { temporary, mode: MODE_FILE });
    await syncFolder(path.dirname(target));
  } catch (cause) {
    throw new AppError("delivery", `the key file ${file} could not be written`, { cause });
  }
}

/** Creates the file's folder. If the file is a link, returns the link's target: the link stays, and the target is replaced. */
async function prepareTarget(file: string): Promise<string> {
  await makeFolder(path.dirname(file));
  return realpath(file).catch(() => file);
}

/** Creates one folder at a time: if a folder can't be created, as in /proc, Node's recursive mkdir tries for ever. */
async function makeFolder(folder: string): Promise<void> {
  const missing: string[] = [];
  for (let at = folder; !(await isFolder(at)); at = path.dirname(at)) missing.unshift(at);
  for (const each of missing) {
    await mkdir(each, { mode: FOLDER_MODE }).catch(async (error: unknown) => {
      // Another process may have created the folder in the meantime.
      if (!(await isFolder(each))) throw error;
    });
  }
}

async function isFolder(folder: string): Promise<boolean> {
  try {
    if ((await stat(folder)).isDirectory()) return true;
  } catch (error) {
    if (systemCode(error) === "ENOENT" && folder !== path.dirname(folder)) {
      return false;
    }
    throw error;
  }
  throw new Error(`${folder} is not a folder`);
}

/** Without this a power failure may undo the rename. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * What is wrong with the file. Undefined if it holds the key, or if this user may not read it because it now belongs to the
 * program that reads the key. Without a key, only the existence of the file is checked.
 */
async function keyFileFault(file: string, key: Secret | undefined): Promise<string | undefined> {
  try {
    const text = await readRegularFile(file);
    return key && text.toString("utf8").trim() !== key.reveal()
      ? "holds something else than the key in use"
      : undefined;
  } catch (error) {
    const code = systemCode(error) || "unknown";
    if (code === "EACCES" || code === "EPERM") return undefined;
    if (code === "ENOENT" || code === "ENOTDIR") return "is gone";
    return code === "ETIMEDOUT" ? "can't be read: its file system does not answer" : `can't be read (${code})`;
  }
}

// A sink that is a command. The key goes to its standard input: arguments and environment are shown in the process list.

type CommandSink = Extract<Sink, { kind: "command" }>;

export async function testKeyCommand(program: string): Promise<void> {
  if (await isProgram(program)) return;
  throw new AppError("delivery", `the command ${JSON.stringify(program)} does not exist, or may not be run`);
}

export async function runKeyCommand(
  { command, timeoutSeconds }: CommandSink,
  key: Secret,
  apiKeyId: string,
): Promise<void> {
  const { failure } = await runCommand(command, {
    input: `${key.reveal()}\n`,
    variables: { USAGE_EXPORT_API_KEY_ID: apiKeyId },
    timeoutSeconds,
  });
  if (failure === undefined) return;
  const program = JSON.stringify(command[0] ?? "");
  const hint = "its output is not shown, as it may hold the key; run it by hand to see why";
  throw new AppError("delivery", `the command ${program} ${failure}: ${hint}`);
}
