// Reads the configuration, and adds each discovered project as if the file named it.

import { isUtf8 } from "node:buffer";
import path from "node:path";
import { AppError, systemCode } from "../errors.ts";
import { readRegularFile } from "../files.ts";
import { present } from "../text.ts";
import { SCOPE_GROUPINGS } from "../usage/budgets.ts";
import type { Source } from "../usage/dimensions.ts";
import type { ExportJob } from "../usage/export-plan.ts";
import { filterKey, type Grouping, type KnownProject, NO_CONDITIONS } from "../usage/series.ts";
import { crossFieldIssues } from "./cross-field-rules.ts";
import { type ConfigIssue, parseJson } from "./json.ts";
import { configError, defaultExpectation, fileReadProblem, quoteAll, toConfigIssues } from "./messages.ts";
import { type Budget, resolveBudgets } from "./money.ts";
import { type Discovery, fillInId, keyName, matchesPattern, type ProjectInFile, projectsNamed } from "./projects.ts";
import { deliveryIssues, jobNameOf, keyOfProject, type RotationConfig, rotationsOf } from "./rotations.ts";
import { ConfigFile } from "./schema.ts";

/** The configuration after all checks: defaults are filled in, each name is replaced by what it names, and paths are absolute. */
export type Config = Omit<ConfigFile, "$schema" | "projects" | "exports" | "rotations" | "budgets"> & {
  /** The file's content, from which the fields below are computed, anew whenever the discovered projects change. */
  readonly file: ConfigFile;
  readonly projects: readonly ConfiguredProject[];
  readonly exports: readonly ExportJob[];
  /** A rotation of many projects is here once for each of them. */
  readonly rotations: readonly RotationConfig[];
  readonly budgets: readonly Budget[];
  readonly discovery: readonly Discovery[];
  /** The version of the stored lists of projects. Only `withDiscovered` sets it. */
  readonly projectsVersion?: string;
};

/** `backfill` is the number of days before the project's discovery that are also read. */
type ConfiguredProject = ProjectInFile & { readonly isDiscovered?: true; readonly backfill?: number };

/** Relative paths in the file start at the file's folder. Throws an AppError that names every issue. */
export async function loadConfig(file: string): Promise<Config> {
  const bytes = await readRegularFile(file).catch((cause: unknown) => {
    const init = systemCode(cause) === "ENOENT" ? "make one with: usage-export init, or " : "";
    const problem = `the configuration ${fileReadProblem(file, cause)}; ${init}name another with --config FILE`;
    throw new AppError("config", problem);
  });
  if (!isUtf8(bytes)) throw new AppError("config", `${file} is not UTF-8 text: save it as UTF-8`);
  return parseConfig(bytes.toString("utf8"), file);
}

/** `source` is the text's name in messages. Throws one AppError that names every issue with its path. */
export function parseConfig(text: string, source: string, baseDir = path.dirname(path.resolve(source))): Config {
  const document = parseJson(text, source);
  // jitless: a schema that is used once costs more to compile than to run.
  const parsed = ConfigFile.safeParse(document.value, { error: defaultExpectation, reportInput: true, jitless: true });
  const mistakes = parsed.success ? crossFieldIssues(parsed.data) : toConfigIssues(parsed.error.issues);
  const issues = [...document.duplicateIssues, ...mistakes];
  if (!parsed.success || issues.length > 0) throw configError(source, issues, document);
  const file = parsed.data;
  const { projects, rotations, monitor, notify } = file;
  makePathsAbsolute({ projects, rotations, monitor, notify }, baseDir);
  const config = configOf(file, []);
  const errors = [...deliveryIssues(rotations, config.projects), ...unreadBudgetIssues(config)];
  if (errors.length > 0) throw configError(source, errors, document);
  return config;
}

/** Changes the path of each `{ file }` at any depth, in place. Not for exports: a feature may be called "file". */
function makePathsAbsolute(value: unknown, baseDir: string): void {
  if (typeof value !== "object" || value === null) return;
  if ("file" in value) value.file = path.resolve(baseDir, String(value.file));
  for (const part of Object.values(value)) makePathsAbsolute(part, baseDir);
}

export type ConfiguredJob = ReturnType<typeof jobsOf>[number];

/** The jobs of the file, exports first. A rotation of many projects is one job. */
export function jobsOf(config: Pick<Config, "exports" | "rotations" | "file">) {
  const rotationsByJob = Map.groupBy(config.rotations, jobNameOf);
  return [
    ...config.exports.map((job) => ({ ...job, kind: "export" as const })),
    ...config.file.rotations.map(({ name, schedule, timezone, projects }) => {
      const rotations = rotationsByJob.get(name) ?? [];
      return { kind: "rotation" as const, name, schedule, timezone, rotations, isForMany: projects !== undefined };
    }),
  ];
}

/** Replaces the discovered projects. A vanished project is left out, as if removed from the file, but budgets still count its usage. */
export function withDiscovered(config: Config, known: readonly KnownProject[], version = "not stored"): Config {
  return config.discovery.length === 0 ? config : { ...configOf(config.file, known), projectsVersion: version };
}

function configOf(file: ConfigFile, known: readonly KnownProject[]): Config {
  const { $schema, ...rest } = file;
  const discovery = file.projects.filter((one) => "discover" in one);
  const inFile = file.projects
    .filter((one) => "id" in one)
    .map((project) => ({ ...project, key: keyOfProject(project.key, file.rotations, project) }));
  const found = discoveredProjects(discovery, inFile, known);
  const projects = [...inFile, ...found.flatMap(({ project, hasVanished }) => (hasVanished ? [] : project))];
  const everSeen = [...inFile, ...found.map(({ project }) => project)];
  return {
    ...rest,
    file,
    discovery,
    projects,
    exports: exportsOf(file, projects),
    rotations: rotationsOf(file.rotations, projects),
    budgets: resolveBudgets(file.budgets, { projects: everSeen, exports: exportsOf(file, everSeen) }),
  };
}

/** `crossFieldIssues` has checked that every name is a project's. */
function exportsOf({ exports }: ConfigFile, projects: readonly ConfiguredProject[]): readonly ExportJob[] {
  return exports.map((job) => ({
    ...job,
    projects: projectsNamed(projects, job.projects),
    filters: job.filters.filter((filter) => "name" in filter),
    fanOuts: job.filters.filter((one) => "each" in one).map(({ each, atMost }) => ({ dimension: each, atMost })),
  }));
}

/** Each discovered project belongs to the first entry whose list still has it, else to the first entry whose list ever had it. */
function discoveredProjects(
  entries: readonly Discovery[],
  inFile: readonly ConfiguredProject[],
  known: readonly KnownProject[],
): { readonly project: ConfiguredProject; readonly hasVanished: boolean }[] {
  const byKeyName = Map.groupBy(known, (project) => project.keyName);
  const idsInFile = new Set(inFile.map(({ id }) => id));
  const chosen = new Map<string, { readonly entry: Discovery; readonly found: KnownProject }>();
  for (const entry of entries) {
    for (const found of byKeyName.get(keyName(entry.key)) ?? []) {
      if (idsInFile.has(found.id) || !includes(entry, found)) continue;
      const other = chosen.get(found.id);
      const isBetter = !other || (other.found.vanishedAt !== null && found.vanishedAt === null);
      if (isBetter) chosen.set(found.id, { entry, found });
    }
  }
  // If several projects have one name, the project that had the name first keeps it, even after vanishing: the views still show it.
  const taken = new Set(inFile.map(({ name }) => name));
  return [...chosen.values()]
    .sort((a, b) => Number(a.found.namedAt) - Number(b.found.namedAt) || (a.found.id < b.found.id ? -1 : 1))
    .map(({ entry, found }) => {
      let { name } = found;
      while (taken.has(name)) name = `${name} (${found.id})`;
      taken.add(name);
      const { backfill } = entry;
      const key = fillInId(entry.projectKey ?? entry.key, found.id);
      const project = { id: found.id, name, key, isDiscovered: true as const, ...(backfill > 0 && { backfill }) };
      return { project, hasVanished: found.vanishedAt !== null };
    });
}

function includes({ include, exclude }: Discovery, { id, name }: KnownProject): boolean {
  const fits = (pattern: string) => matchesPattern(pattern, name) || matchesPattern(pattern, id);
  return include.some(fits) && !exclude.some(fits);
}

const BILL_CURRENCY = "USD";
const NO_COST = `nothing gives this cost: the service bills in ${BILL_CURRENCY} and not by model, and an estimate needs "prices" and can't be for one key or tag`;

/** Reports each budget whose usage no export reads: it would never be used up. */
function unreadBudgetIssues({ budgets, exports, prices, discovery }: Config): ConfigIssue[] {
  return budgets.flatMap(({ project, scope, metric, currency, projects }, i) => {
    // A budget without `project` counts projects that may not be discovered yet.
    if (project === undefined && discovery.length > 0) return [];
    const grouping = SCOPE_GROUPINGS[scope];
    const isBilled = currency === BILL_CURRENCY && scope !== "model";
    const isPriced = prices.length > 0 && (scope === "all" || scope === "model");
    const forCost = present<[Source, Grouping]>([isBilled && ["billing", grouping], isPriced && ["usage", "model"]]);
    const sources: readonly [Source, Grouping][] = metric === "cost" ? forCost : [["usage", grouping]];
    if (sources.length === 0) return [{ path: ["budgets", i], message: NO_COST }];
    const readers = exports.filter(({ source, groupings, filters }) => {
      const isUnfiltered = filters.some((filter) => filterKey(filter) === NO_CONDITIONS);
      return isUnfiltered && sources.some(([needed, by]) => source === needed && groupings.includes(by));
    });
    const read = new Set(readers.flatMap((job) => job.projects.map(({ id }) => id)));
    const unread = projects.filter(({ id }) => !read.has(id)).map(({ name }) => name);
    if (projects.length > 0 && unread.length === 0) return [];
    const needed = sources.map(([source, by]) => `the ${source} by the grouping ${JSON.stringify(by)}`).join(" or ");
    const message = `no export reads ${needed} of ${quoteAll(unread) || "any project"} without conditions: add one, or this budget is never used up`;
    return [{ path: ["budgets", i], message }];
  });
}
