// Reads the configuration file.

import { isUtf8 } from "node:buffer";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { AppError, systemCode } from "../errors.ts";
import { DEFAULT_INSTALLATION } from "../usage/installation.ts";
import { type Config, type ParseOptions, parseConfig } from "./config.ts";
import { fileReadProblem } from "./messages.ts";

/** Folder of the embedded database, relative to the working directory. */
export const DATA_FOLDER = "data";

type LoadOptions = Pick<ParseOptions, "isExample"> & {
  /** Called with the path of each further file that the configuration is made of, before it is read. */
  readonly onFile?: (file: string) => void;
};

/** Relative paths in the file start at the file's folder. Throws an AppError that names every issue. */
export async function loadConfig(file: string, { onFile, ...options }: LoadOptions = {}): Promise<Config> {
  const bytes = await readFile(file).catch((cause: unknown) => {
    const init = systemCode(cause) === "ENOENT" ? "make one with: usage-export init, or " : "";
    throw new AppError(
      "config",
      `the configuration ${fileReadProblem(file, cause)}; ${init}name another with --config FILE`,
    );
  });
  const own = path.resolve(file);
  const ownPaths = {
    [own]: "this configuration file",
    [path.resolve(DATA_FOLDER)]: "the folder of the embedded database",
  };
  return parseConfig(decode(file, bytes), {
    source: file,
    baseDir: path.dirname(own),
    ownPaths,
    readPrices(prices) {
      onFile?.(prices);
      return readPrices(prices);
    },
    ...options,
  });
}

/**
 * Which installation the configuration belongs to. Commands that do without a configuration belong to the default one, also if the file
 * can't be read: those that need it say so themselves.
 */
export async function readInstallation(file: string): Promise<string> {
  const text = await readFile(file, "utf8").catch(() => "");
  try {
    const { installation }: { installation?: unknown } = JSON.parse(text.replace(/^\uFEFF/, ""));
    return typeof installation === "string" ? installation : DEFAULT_INSTALLATION;
  } catch {
    return DEFAULT_INSTALLATION;
  }
}

function readPrices(file: string): string {
  try {
    return decode(file, readFileSync(file));
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    const problem = `prices.file: ${fileReadProblem(file, cause)}: expected a file with a list of prices`;
    throw new AppError("config", problem, { cause });
  }
}

function decode(file: string, bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new AppError("config", `${file} is not UTF-8 text: save it as UTF-8`);
  return bytes.toString("utf8");
}
