// Reads the configuration: checked, defaults filled in, names replaced by what they name, paths absolute.

import { isUtf8 } from "node:buffer";
import path from "node:path";
import { z } from "zod";
import { AppError, systemCode } from "../errors.ts";
import { readRegularFile } from "../files.ts";
import { DATA_FOLDER } from "../package-files.ts";
import type { Budget } from "../usage/budgets.ts";
import type { ExportJob } from "../usage/plan.ts";
import type { Price } from "../usage/prices.ts";
import { crossFieldIssues } from "./checks.ts";
import { reportingIssues } from "./fields.ts";
import { type JsonDocument, parseJson } from "./json.ts";
import { type ConfigIssue, configError, defaultExpectation, fileReadProblem, toConfigIssues } from "./messages.ts";
import { overlapIssues, PriceList, resolveBudgets, type WrittenBudget } from "./money.ts";
import { projectsNamed } from "./patterns.ts";
import type { Discovery, KeyReference, WrittenProject } from "./projects.ts";
import { keyOfProject, type LeftOut, type RotationConfig, type RotationTemplates, rotationsOf } from "./rotations.ts";
import { ConfigFile } from "./schema.ts";

/** `baseUrl` has no slash at its end, `publicUrl` has one. */
export type Config = Omit<ConfigFile, "$schema" | "projects" | "exports" | "rotations" | "prices" | "budgets"> & {
  /** Those in the file. `withDiscovered` (discovered.ts) adds those that the service lists. */
  readonly projects: readonly ConfiguredProject[];
  readonly prices: readonly Price[];
  readonly budgets: readonly Budget[];
  readonly exports: readonly ExportJob[];
  readonly rotations: readonly RotationConfig[];
  /** Left out if no rotation is for many projects. */
  readonly rotationTemplates?: RotationTemplates;
  /** Discovered projects that rotations of many projects leave out. */
  readonly leftOut?: readonly LeftOut[];
  /** What is needed to add discovered projects; left out if no entry of the file discovers any. */
  readonly discovery?: DiscoverySettings;
};

export type ConfiguredProject = WrittenProject & {
  /** Discovered projects of one entry share one object as their key, unless each has its own. */
  readonly isDiscovered?: true;
  /** How many days before the first reading of a discovered project are read, too. */
  readonly backfill?: number;
};

type DiscoverySettings = {
  /** `index` is that of the entry in the file's list of projects. */
  readonly entries: readonly (Discovery & { readonly index: number })[];
  /** By the name of an export, the names and patterns of its projects. */
  readonly projectsOf: Readonly<Record<string, readonly string[]>>;
  readonly budgets: readonly WrittenBudget[];
  readonly hasPrices: boolean;
  /** Which version of the stored lists the projects are of; left out until they have been added. */
  readonly version?: string;
};

/** A secret that is found in a variable or a file. */
export type SecretReference = Exclude<KeyReference, { kind: "rotation" | "command" }>;

export type ConfiguredJob =
  | (ExportJob & { readonly kind: "export" })
  | (RotationConfig & { readonly kind: "rotation" });

export type ParseOptions = {
  readonly source: string;
  /** Where relative paths start. */
  readonly baseDir: string;
  /** The program's own files and folders (absolute paths), and what each of them is. No key may be delivered there. */
  readonly ownPaths?: Readonly<Record<string, string>>;
  /** Accepts the placeholder project of the packaged example, because only the emulator is asked for it. */
  readonly isExample?: boolean;
  /** Reads the file of prices that the configuration names. Without it such a file counts as empty. */
  readonly readPrices?: (file: string) => string;
};

/** `source` names the text in messages; relative paths start at `baseDir`. Throws one AppError that names every issue with its path. */
export function parseConfig(text: string, options: ParseOptions): Config {
  return configFrom(parseJson(text, options.source), options);
}

function configFrom(document: JsonDocument, options: ParseOptions): Config {
  const schema = ConfigFile.superRefine(reportingIssues((file) => crossFieldIssues(file, options.isExample)));
  const file = checked(schema, document, options.source);
  const { projects, rotations, monitor, notify, prices } = file;
  makePathsAbsolute({ projects, rotations, monitor, notify, prices }, options.baseDir);
  const templates = { written: rotations, ownPaths: options.ownPaths ?? {} };
  const { rotations: ofProjects, leftOut } = rotationsOf(
    templates,
    projects.filter((one) => "id" in one),
  );
  const isForMany = rotations.some((one) => one.projects !== undefined);
  const resolved = {
    ...resolveNames(file),
    rotations: ofProjects,
    ...(isForMany && { rotationTemplates: templates }),
  };
  const priceList = "path" in prices ? pricesInFile(prices.path, options) : prices;
  const hasPrices = "path" in prices || priceList.length > 0;
  const { budgets, issues } = resolveBudgets(file.budgets, { ...resolved, hasPrices });
  // Which projects a budget for all of them counts is not known before they are discovered.
  const isKnown = ({ path: [, index] }: ConfigIssue) => file.budgets[Number(index)]?.project !== undefined;
  const entries = projects.flatMap((one, index) => ("discover" in one ? [{ ...one, index }] : []));
  const errors = [...leftOut, ...(entries.length === 0 ? issues : issues.filter(isKnown))];
  if (errors.length > 0) throw configError(options.source, errors, document);
  const config = { ...resolved, prices: priceList, budgets };
  if (entries.length === 0) return config;
  const projectsOf = Object.fromEntries(file.exports.map((job) => [job.name, job.projects]));
  return { ...config, discovery: { entries, projectsOf, budgets: file.budgets, hasPrices } };
}

const FileOfPrices = PriceList.superRefine(reportingIssues((prices) => overlapIssues(prices, [])));

function pricesInFile(file: string, { readPrices }: ParseOptions): readonly Price[] {
  return readPrices === undefined ? [] : checked(FileOfPrices, parseJson(readPrices(file), file), file);
}

function checked<Schema extends z.ZodType>(schema: Schema, document: JsonDocument, source: string): z.output<Schema> {
  const { value, duplicates } = document;
  // jitless: a schema that is used once costs more to compile than to run.
  const parsed = schema.safeParse(value, { error: defaultExpectation, reportInput: true, jitless: true });
  const issues = [
    ...duplicates.map(({ path, firstLine }) => ({
      path,
      message: `is given twice, first in line ${firstLine}, and only the second would count; remove one of them`,
    })),
    ...(parsed.success ? [] : toConfigIssues(parsed.error.issues)),
  ];
  if (!parsed.success || issues.length > 0) throw configError(source, issues, document);
  return parsed.data;
}

/** Every job, the exports first. */
export function jobsOf({ exports, rotations }: Pick<Config, "exports" | "rotations">): ConfiguredJob[] {
  return [
    ...exports.map((job) => ({ ...job, kind: "export" as const })),
    ...rotations.map((job) => ({ ...job, kind: "rotation" as const })),
  ];
}

/** Changes each `{ kind: "file", path }` at any depth in place. Not for exports: a filter's features may be named `kind` and `path`. */
function makePathsAbsolute(value: unknown, baseDir: string): void {
  if (typeof value !== "object" || value === null) return;
  if ("kind" in value && value.kind === "file" && "path" in value)
    value.path = path.resolve(baseDir, String(value.path));
  for (const part of Object.values(value)) makePathsAbsolute(part, baseDir);
}

type ResolvedNames = Omit<Config, "prices" | "budgets" | "discovery" | "rotations">;

function resolveNames({ $schema, exports, rotations, prices, budgets, ...rest }: ConfigFile): ResolvedNames {
  const projects = rest.projects
    .filter((one) => "id" in one)
    .map((project) => ({ ...project, key: keyOfProject(project.key, rotations, project) }));
  // `crossFieldIssues` has checked that each name has a project.
  return {
    ...rest,
    projects,
    exports: exports.map((job) => ({
      ...job,
      projects: projectsNamed(projects, job.projects),
      filters: job.filters.filter((filter) => "name" in filter),
      fanOuts: job.filters.flatMap((filter) =>
        "each" in filter ? [{ dimension: filter.each, atMost: filter.atMost }] : [],
      ),
    })),
  };
}

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
