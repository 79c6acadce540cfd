// The command `emulator`: runs the emulator of the service, to try the product without the real service.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { App } from "../app.ts";
import { type Emulator, startEmulator } from "../emulator/server.ts";
import { AppError } from "../errors.ts";
import { COMMAND } from "../package-files.ts";
import type { Dialect } from "../usage/dimensions.ts";

export type EmulatorOptions = {
  readonly port: number;
  readonly dialect: Dialect;
  readonly seed: number;
  /** The projects' ids. With several, the first key may use each of them. */
  readonly project: readonly string[];
};

const KEY_VARIABLE = "USAGE_EXPORT_KEY";

/** The first key of the emulator. `file` is the path of the key's file if this command made the key. */
type FirstKey = AsyncDisposable & { readonly secret: string; readonly file: string | undefined };

/** Listens on 127.0.0.1 only, because anyone who reaches it may use it. Runs until a signal stops it. */
export async function runEmulator(
  { env, write, signal }: Pick<App, "env" | "write" | "signal">,
  options: EmulatorOptions,
): Promise<number> {
  await using key = await openFirstKey(env[KEY_VARIABLE]);
  await using emulator = await listen(options, key.secret);
  write(renderHint(options, emulator.url, key.file));
  if (!signal.aborted) await once(signal, "abort");
  return 0;
}

/** A key made here is valid for one run of the emulator, so its file is removed with it. */
async function openFirstKey(given: string | undefined): Promise<FirstKey> {
  if (given) return { secret: given, file: undefined, [Symbol.asyncDispose]: async () => {} };
  const secret = randomBytes(20).toString("hex");
  const folder = await mkdtemp(path.join(tmpdir(), "usage-export-emulator-"));
  const file = path.join(folder, "first.key");
  await writeFile(file, `${secret}\n`, { mode: 0o600, flag: "wx" });
  return { secret, file, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

async function listen({ port, dialect, seed, project: projects }: EmulatorOptions, secret: string): Promise<Emulator> {
  const account = projects.map((id) => ({ id, name: id }));
  const [first = ""] = projects;
  const key = { secret, projectId: first, scopes: ["member", "billing:read"], isAccountKey: projects.length > 1 };
  try {
    return await startEmulator({ port, dialect, seed, consoleKeys: [key], projects: () => account });
  } catch (cause) {
    const address = `127.0.0.1:${port}`;
    throw new AppError("config", `cannot listen on ${address}: choose another --port, or 0 for any free one`, {
      cause,
    });
  }
}

function renderHint(
  { dialect, seed, project: projects }: EmulatorOptions,
  url: string,
  file: string | undefined,
): string {
  const config = {
    service: { baseUrl: url, dialect },
    projects: projects.map((id) => ({ id, name: id, key: { env: KEY_VARIABLE } })),
  };
  return `The service's emulator answers at ${url} (dialect ${dialect}, seed ${seed}) until it is stopped.

Its first key is ${file === undefined ? `the one in ${KEY_VARIABLE}` : `in ${file}: export ${KEY_VARIABLE}="$(cat ${file})"`}

To write a configuration for it: ${COMMAND} init --yes --base-url ${url}${projects.length > 1 ? ` --project ${projects[0]}` : ""}

Or in jobs.config.json:
${JSON.stringify(config, undefined, 2).replace(/^\{\n|\n\}$/g, "")}
`;
}
