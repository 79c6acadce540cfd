// Delivers a key to its sinks: files and commands. The same key may be delivered twice: a process may end before it records the delivery.

import { randomBytes } from "node:crypto";
import { mkdir, open, realpath, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { isProgram, runCommand } from "../command.ts";
import type { Sink } from "../config/rotations.ts";
import { AppError, systemCode } from "../errors.ts";
import { readRegularFile, replaceFile, withFileLimit } from "../files.ts";
import type { Secret } from "../secret.ts";
import { sinkId } from "./rotation-plan.ts";

const DELIVERY_MS_MAX = 20_000;
const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;

/** Throws `delivery` if the sink could not take a key now. Called before a key is created, so that none is created in vain. */
export async function testSink(sink: Sink): Promise<void> {
  if ("command" in sink) {
    const [program = ""] = sink.command;
    if (await isProgram(program)) return;
    throw new AppError("delivery", `the command ${JSON.stringify(program)} does not exist, or may not be run`);
  }
  await withKeyFile(sink.file, async (target) => {
    const existing = await stat(target).catch(() => undefined);
    if (existing && !existing.isFile()) throw new Error("it is not a file");
    // A random name: no existing file has it.
    const probe = `${target}.usage-export-${randomBytes(6).toString("hex")}.probe`;
    try {
      await writeFile(probe, "", { flag: "wx", mode: FILE_MODE, flush: true });
    } finally {
      await rm(probe, { force: true });
    }
  });
}

/** Throws `delivery`. A command gets the key on its standard input, because the process list shows arguments and environment. */
export async function deliverKey(sink: Sink, { apiKeyId, key }: { apiKeyId: string; key: Secret }): Promise<void> {
  if ("file" in sink) return withKeyFile(sink.file, (target) => writeKeyFile(target, key));
  const { command, timeoutSeconds } = sink;
  const options = { stdin: `${key.reveal()}\n`, variables: { USAGE_EXPORT_API_KEY_ID: apiKeyId }, timeoutSeconds };
  const { failure } = await runCommand(command, options);
  if (failure === undefined) return;
  const hint = "its output is not shown, as it may hold the key; run it by hand to see why";
  throw new AppError("delivery", `the command ${JSON.stringify(command[0] ?? "")} ${failure}: ${hint}`);
}

/** Creates the file's folder. If the file is a symbolic link, `work` gets its target: the target is replaced, and the link stays. */
async function withKeyFile(file: string, work: (target: string) => Promise<void>): Promise<void> {
  try {
    await withFileLimit(file, DELIVERY_MS_MAX, async () => {
      await makeFolder(path.dirname(file));
      await work(await realpath(file).catch(() => file));
    });
  } catch (cause) {
    throw new AppError("delivery", `the key file ${file} can't be written`, { cause });
  }
}

/** Node's recursive mkdir never returns where no folder can be made, such as in /proc. The process could then not even exit. */
async function makeFolder(folder: string, isParentMade = false): Promise<void> {
  try {
    await mkdir(folder, { mode: FOLDER_MODE });
  } catch (error) {
    if (systemCode(error) === "EEXIST") return;
    if (systemCode(error) !== "ENOENT" || isParentMade) throw error;
    await makeFolder(path.dirname(folder));
    await makeFolder(folder, true);
  }
}

/** A reader sees the whole old key or the whole new one. The next delivery removes a temporary file that a crash left, by its fixed name. */
async function writeKeyFile(target: string, key: Secret): Promise<void> {
  const temporary = `${target}.usage-export-next`;
  await rm(temporary, { force: true });
  await replaceFile(target, [`${key.reveal()}\n`], { temporary, mode: FILE_MODE });
  // Without this a power failure may undo the rename.
  await using folder = await open(path.dirname(target), "r");
  await folder.sync();
}

/** The files that should hold the key but do not, by sink id, with what is wrong. What a command did with the key can't be checked. */
export async function staleFiles(sinks: readonly Sink[], heldBy: readonly string[], key: Secret) {
  const stale = new Map<string, string>();
  for (const sink of sinks) {
    const id = sinkId(sink);
    if (!("file" in sink) || !heldBy.includes(id)) continue;
    const fault = await keyFileFault(sink.file, key);
    if (fault !== undefined) stale.set(id, `the delivered file ${sink.file} ${fault}`);
  }
  return stale;
}

/** Undefined if the file holds the key, or belongs to the program that uses the key and can't be read from here. */
async function keyFileFault(file: string, key: Secret): Promise<string | undefined> {
  try {
    const text = (await readRegularFile(file)).toString("utf8");
    return text.trim() === key.reveal() ? undefined : "holds something other than the key in use";
  } catch (error) {
    const code = systemCode(error) || "unknown";
    if (code === "EACCES" || code === "EPERM") return undefined;
    return code === "ENOENT" ? "is gone" : `can't be read (${code})`;
  }
}
