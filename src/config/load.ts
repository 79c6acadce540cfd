// Reads the configuration file.

import { isUtf8 } from "node:buffer";
import path from "node:path";
import { z } from "zod";
import { AppError, systemCode } from "../errors.ts";
import { readRegularFile } from "../files.ts";
import { DATA_FOLDER } from "../package-files.ts";
import { type Config, configFrom, type ParseOptions } from "./config.ts";
import { parseJson } from "./json.ts";
import { fileReadProblem } from "./messages.ts";

type LoadOptions = Pick<ParseOptions, "isExample"> & {
  /** Called with the path of each further file that the configuration is made of, before it is read. */
  readonly onFile?: (file: string) => void;
};

/** Relative paths in the file start at the file's folder. Throws an AppError that names every issue. */
export async function loadConfig(file: string, { onFile, ...options }: LoadOptions = {}): Promise<Config> {
  const bytes = await readRegularFile(file).catch((cause: unknown) => {
    const init = systemCode(cause) === "ENOENT" ? "make one with: usage-export init, or " : "";
    throw new AppError(
      "config",
      `the configuration ${fileReadProblem(file, cause)}; ${init}name another with --config FILE`,
    );
  });
  const document = parseJson(decode(file, bytes), file);
  const own = path.resolve(file);
  const baseDir = path.dirname(own);
  const named = pricesFileIn(document.value);
  const prices = named === undefined ? undefined : path.resolve(baseDir, named);
  if (prices !== undefined) onFile?.(prices);
  const read = prices === undefined ? "" : await readPrices(prices).catch((error: Error) => error);
  const ownPaths = {
    [own]: "this configuration file",
    [path.resolve(DATA_FOLDER)]: "the folder of the embedded database",
  };
  return configFrom(document, {
    source: file,
    baseDir,
    ownPaths,
    // Called if nothing else is wrong.
    readPrices() {
      if (read instanceof Error) throw read;
      return read;
    },
    ...options,
  });
}

/** As the file names it. Undefined if it names none, also by mistake. */
function pricesFileIn(value: unknown): string | undefined {
  return z.object({ prices: z.object({ file: z.string() }) }).safeParse(value).data?.prices.file;
}

async function readPrices(file: string): Promise<string> {
  const bytes = await readRegularFile(file).catch((cause: unknown) => {
    const problem = `prices.file: ${fileReadProblem(file, cause)}: expected a file with a list of prices`;
    throw new AppError("config", problem, { cause });
  });
  return decode(file, bytes);
}

function decode(file: string, bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new AppError("config", `${file} is not UTF-8 text: save it as UTF-8`);
  return bytes.toString("utf8");
}
