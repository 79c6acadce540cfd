// From the shape of the file to the configuration: names become what they stand for, paths absolute. Pure, and only for
// what has passed every check.

import path from "node:path";
import type { Sink } from "../keys/policy.ts";
import type { ExportJob } from "../usage/plan.ts";
import type { Project } from "../usage/series.ts";
import { normaliseBaseUrl } from "./base-url.ts";
import type { Config, KeyReference, MonitorConfig, NotifyConfig, RotationConfig, SecretReference } from "./config.ts";
import { asSent } from "./filter-identity.ts";
import type { Shape } from "./shape.ts";

type RawProject = Shape["projects"][number];
type RawReference = Exclude<RawProject["key"], { rotation: string }>;
type RawExport = Shape["exports"][number];
type RawRotation = Shape["rotations"][number];

export function resolveConfig(shape: Shape, baseDir: string): Config {
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
    filters: job.filters.map((filter) => ({ ...filter, features: asSent(filter.features) })),
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

function resolveMonitor({ host, port, publicUrl, access }: Shape["monitor"], baseDir: string): MonitorConfig {
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

function resolveNotify({ webhook, deadMan }: Shape["notify"], baseDir: string): NotifyConfig {
  return {
    ...(webhook && { webhook: resolveReference(webhook, baseDir) }),
    ...(deadMan && { deadMan: resolveReference(deadMan, baseDir) }),
  };
}
