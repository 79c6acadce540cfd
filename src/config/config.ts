// The configuration as the program uses it: checked, references resolved, defaults filled in. Pure: text in, Config out.

import path from "node:path";
import type { RotationJob, Sink } from "../keys/policy.ts";
import type { ExportJob } from "../usage/plan.ts";
import type { Project } from "../usage/series.ts";
import { featureValuesAsText, placeholderIssues, referenceIssues } from "./checks.ts";
import { normaliseBaseUrl } from "./formats.ts";
import { type JsonDocument, parseJson } from "./json.ts";
import { lenientParse } from "./lenient-parse.ts";
import { type ConfigIssue, configError, defaultExpectation, toConfigIssues } from "./messages.ts";
import { ConfigFile } from "./schema.ts";

export type Config = {
  readonly service: ServiceConfig;
  readonly projects: readonly ProjectConfig[];
  readonly exports: readonly ExportJob[];
  readonly rotations: readonly RotationConfig[];
  readonly runs: { readonly keepDays: number };
  readonly worker: { readonly drainSeconds: number };
  readonly monitor: MonitorConfig;
  readonly notify: NotifyConfig;
};

type ServiceConfig = {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly authScheme: "Token" | "Bearer" | "none";
  readonly dialect: "auto" | "interface" | "2026";
  readonly requestsPerSecond: number;
  readonly maxConcurrent: number;
  readonly timeoutSeconds: number;
};

/** `createWith` is the key that creates and deletes the rotation's keys; left out, the project's own key does. */
export type RotationConfig = RotationJob & { readonly createWith?: KeyReference };

type ProjectConfig = { readonly id: string; readonly name: string; readonly key: KeyReference };

export type MonitorConfig = {
  readonly host: string;
  readonly port: number;
  /** Ends with a slash. */
  readonly publicUrl?: string;
  readonly access?: AccessReference;
};

/** What the monitor asks for. */
export type AccessReference =
  | { readonly kind: "bearer"; readonly token: SecretReference }
  | { readonly kind: "basic"; readonly username: string; readonly password: SecretReference };

/** Both are addresses, and secrets. */
export type NotifyConfig = { readonly webhook?: SecretReference; readonly deadMan?: SecretReference };

/** A secret that is found without the database. File paths are absolute. */
export type SecretReference =
  | { readonly kind: "env"; readonly name: string }
  | { readonly kind: "file"; readonly path: string };

export type KeyReference =
  | SecretReference
  | {
      readonly kind: "rotation";
      readonly rotation: string;
      /** The key to use until the rotation has made one. */
      readonly first: SecretReference;
    };

export type ParseOptions = {
  readonly source: string;
  readonly baseDir: string;
  /** The program's own files and folders (absolute paths), and what each of them is. No key may be delivered there. */
  readonly ownPaths?: Readonly<Record<string, string>>;
  /** Accepts the placeholder project of the packaged example, because only the emulator is asked for it. */
  readonly isExample?: boolean;
};

/**
 * `source` names the text in messages; relative paths start at `baseDir`. Throws one AppError that names every fault, each
 * with its place.
 */
export function parseConfig(text: string, options: ParseOptions): Config {
  const document = parseJson(text, options.source);
  const parsed = ConfigFile.safeParse(document.value, { error: defaultExpectation, reportInput: true });
  const outline = lenientParse(document.value);
  const faults = [
    ...duplicateNameIssues(document),
    ...(parsed.success ? [] : toConfigIssues(parsed.error.issues)),
    ...referenceIssues(outline, options.baseDir, options.ownPaths),
    ...(options.isExample ? [] : placeholderIssues(outline)),
  ];
  if (!parsed.success || faults.length > 0) throw configError(options.source, faults, document.positionOf);
  return resolveConfig(parsed.data, options.baseDir);
}

function duplicateNameIssues({ duplicates }: JsonDocument): ConfigIssue[] {
  return duplicates.map(({ path, firstLine }) => ({
    path,
    message: `stands here again, first in line ${firstLine}, and only the last would count; remove one of them`,
  }));
}

// From the shape of the file to the configuration: names become what they stand for, paths absolute. Pure, and only for
// what has passed every check.

type RawProject = ConfigFile["projects"][number];
type RawReference = Exclude<RawProject["key"], { rotation: string }>;
type RawExport = ConfigFile["exports"][number];
type RawRotation = ConfigFile["rotations"][number];

function resolveConfig(shape: ConfigFile, baseDir: string): Config {
  const byName = new Map(shape.projects.map(({ id, name }) => [name, { id, name }]));
  return {
    service: { ...shape.service, baseUrl: normaliseBaseUrl(shape.service.baseUrl) },
    projects: shape.projects.map(({ id, name, key }) => ({ id, name, key: resolveKey(key, baseDir) })),
    exports: shape.exports.map((job) => resolveExport(job, byName)),
    rotations: shape.rotations.flatMap((job) => resolveRotation(job, byName, baseDir)),
    runs: shape.runs,
    worker: shape.worker,
    monitor: resolveMonitor(shape.monitor, baseDir),
    notify: resolveNotify(shape.notify, baseDir),
  };
}

function resolveKey(key: RawProject["key"], baseDir: string): KeyReference {
  if (!("rotation" in key)) return resolveReference(key, baseDir);
  return { kind: "rotation", rotation: key.rotation, first: resolveReference(key.first, baseDir) };
}

function resolveReference(reference: RawReference, baseDir: string): SecretReference {
  return "env" in reference
    ? { kind: "env", name: reference.env }
    : { kind: "file", path: path.resolve(baseDir, reference.file) };
}

function resolveExport(job: RawExport, byName: ReadonlyMap<string, Project>): ExportJob {
  return {
    ...job,
    projects: job.projects.flatMap((name) => byName.get(name) ?? []),
    filters: job.filters.map((filter) => ({ ...filter, features: featureValuesAsText(filter.features) })),
  };
}

function resolveRotation(job: RawRotation, byName: ReadonlyMap<string, Project>, baseDir: string): RotationConfig[] {
  const project = byName.get(job.project);
  // References are checked before: there is always one.
  if (project === undefined) return [];
  const retire = typeof job.retire === "string" ? job.retire : "delete-by-age";
  const { createWith, ...rest } = job;
  const creator = createWith && { createWith: resolveKey(createWith, baseDir) };
  return [{ ...rest, ...creator, project, retire, deliver: job.deliver.map((sink) => resolveSink(sink, baseDir)) }];
}

function resolveSink(sink: RawRotation["deliver"][number], baseDir: string): Sink {
  return "file" in sink ? { kind: "file", path: path.resolve(baseDir, sink.file) } : { kind: "command", ...sink };
}

function resolveMonitor({ host, port, publicUrl, access }: ConfigFile["monitor"], baseDir: string): MonitorConfig {
  const monitor = {
    host,
    port,
    ...(publicUrl !== undefined && { publicUrl: new URL(publicUrl).href.replace(/\/*$/, "/") }),
  };
  if (access === undefined) return monitor;
  if ("bearer" in access) {
    return { ...monitor, access: { kind: "bearer", token: resolveReference(access.bearer, baseDir) } };
  }
  const { username, password } = access.basic;
  return { ...monitor, access: { kind: "basic", username, password: resolveReference(password, baseDir) } };
}

function resolveNotify({ webhook, deadMan }: ConfigFile["notify"], baseDir: string): NotifyConfig {
  return {
    ...(webhook && { webhook: resolveReference(webhook, baseDir) }),
    ...(deadMan && { deadMan: resolveReference(deadMan, baseDir) }),
  };
}
