// Puts discovered projects into the configuration, each as if it were written there. Pure.

import type { KnownProject } from "../usage/project-list.ts";
import type { Config, ConfiguredProject } from "./config.ts";
import { resolveBudgets } from "./money.ts";
import { matchesPattern, projectsNamed } from "./patterns.ts";
import { type Discovery, type KeyReference, keyIssues, keyName, keyOf, type StaticKeyReference } from "./projects.ts";
import { rotationsOf } from "./rotations.ts";

/** What the list of projects that a key sees is called in the database and in messages. */
export function listOf({ key }: { readonly key: StaticKeyReference }): string {
  return keyName(key);
}

/** Whether the entry is for the project, if the service lists it. */
export function includes({ include, exclude }: Discovery, { id, name }: { id: string; name: string }): boolean {
  const fits = (pattern: string) => matchesPattern(pattern, name) || matchesPattern(pattern, id);
  return include.some(fits) && !exclude.some(fits);
}

/**
 * The configuration with these discovered projects in place of those it had. A project that has vanished is left out, like one that was
 * removed from the file; only budgets go on counting what it used.
 */
export function withDiscovered(config: Config, known: readonly KnownProject[], version = "not stored"): Config {
  const { discovery } = config;
  if (!discovery) return config;
  const written = config.projects.filter(({ isDiscovered }) => !isDiscovered);
  const found = discoveredProjects(discovery.entries, written, known);
  const projects = [...written, ...found.filter(({ hasVanished }) => !hasVanished).map(({ project }) => project)];
  const everSeen = [...written, ...found.map(({ project }) => project)];
  const exportsOf = (all: readonly ConfiguredProject[]) =>
    config.exports.map((job) => ({ ...job, projects: projectsNamed(all, discovery.projectsOf[job.name] ?? []) }));
  const exports = exportsOf(projects);
  const readers = { projects: everSeen, exports: exportsOf(everSeen), hasPrices: discovery.hasPrices };
  // A budget whose usage is not read is reported when the file is parsed, as far as its projects are known then.
  const { budgets } = resolveBudgets(discovery.budgets, readers);
  const ofProjects = config.rotationTemplates && rotationsOf(config.rotationTemplates, projects);
  return { ...config, ...ofProjects, projects, exports, budgets, discovery: { ...discovery, version } };
}

type Found = { readonly project: ConfiguredProject; readonly hasVanished: boolean };

/** Each project once, by the first entry that includes it. A project that is written in the file, too, is not discovered. */
function discoveredProjects(
  entries: readonly Discovery[],
  written: readonly ConfiguredProject[],
  known: readonly KnownProject[],
): Found[] {
  const byList = Map.groupBy(known, ({ list }) => list);
  const writtenIds = new Set(written.map(({ id }) => id));
  const chosen = new Map<string, { readonly entry: Discovery; readonly found: KnownProject }>();
  for (const entry of entries) {
    for (const found of byList.get(listOf(entry)) ?? []) {
      const other = chosen.get(found.id);
      const isBetter = !other || (other.found.vanishedAt !== undefined && found.vanishedAt === undefined);
      if (isBetter && !writtenIds.has(found.id) && includes(entry, found)) chosen.set(found.id, { entry, found });
    }
  }
  // The project that has had a name longest keeps the plain name, also after it has vanished: the views go on showing it, and who looks
  // for a name there does not get the numbers of another project that is renamed to it.
  // A project may be in several lists, and be read by another one later: the first of them counts.
  const named = new Map<string, number>();
  const nameOf = ({ id, name }: KnownProject) => `${id} ${name}`;
  for (const one of known) {
    named.set(nameOf(one), Math.min(one.namedAt.getTime(), named.get(nameOf(one)) ?? Number.POSITIVE_INFINITY));
  }
  const namedOf = ({ found }: { readonly found: KnownProject }) => named.get(nameOf(found)) ?? 0;
  const taken = new Set(written.map(({ name }) => name));
  return [...chosen.values()]
    .sort((a, b) => namedOf(a) - namedOf(b) || (a.found.id < b.found.id ? -1 : 1))
    .map(({ entry, found }) => {
      const name = distinctName(entry.name, found, taken);
      taken.add(name);
      const { backfill } = entry;
      const key = keyOfDiscovered(entry, found.id);
      const project = { id: found.id, name, key, isDiscovered: true as const, ...(backfill > 0 && { backfill }) };
      return { project, hasVanished: found.vanishedAt !== undefined };
    });
}

/**
 * The key that reads the project. An id that can't be put in leaves the placeholder as it is: such a key is not found, which is a failure of
 * this project and not of all.
 */
function keyOfDiscovered({ key, projectKey = key }: Discovery, id: string): KeyReference {
  const project = { id, name: id };
  return keyIssues(projectKey, project, []).length > 0 ? projectKey : keyOf(projectKey, project);
}

function distinctName(template: string, { id, name }: KnownProject, taken: ReadonlySet<string>): string {
  let distinct = template.replaceAll(/\{(?:name|id)\}/g, (placeholder) => (placeholder === "{id}" ? id : name));
  while (taken.has(distinct)) distinct = `${distinct} (${id})`;
  return distinct;
}
