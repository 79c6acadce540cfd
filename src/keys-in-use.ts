// The keys that projects are read with, by the references of the configuration.

import type { App } from "./app.ts";
import type { Config, ProjectConfig } from "./config/config.ts";
import { keyProblems, readKey } from "./config/credentials.ts";
import { AppError } from "./errors.ts";
import type { Secret } from "./secret.ts";
import type { Project } from "./usage/series.ts";

export type KeyOf = (project: Project) => Promise<Secret>;

/** Reads the key of every project, so that all that is wrong with them is known before the first call. */
export async function openKeys(app: App, config: Config): Promise<KeyOf> {
  const problems = await keyProblems(config, app.env);
  if (problems.length > 0) throw new AppError("config", problems.join("\n"));
  const keys = new Map<string, Secret>();
  for (const project of config.projects) {
    keys.set(project.id, app.scrubber.add(await readKey(staticReference(project), app.env)));
  }
  return async ({ id, name }) => {
    const key = keys.get(id);
    if (!key) throw new AppError("config", `project "${name}" has no key`);
    return key;
  };
}

function staticReference({ key }: ProjectConfig) {
  return key.kind === "rotation" ? key.first : key;
}
