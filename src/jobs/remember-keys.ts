// Reads the list of API keys as an export run ends, where the service shows it: what is deleted there is known here.

import { listKeys } from "../api/keys.ts";
import { storeListedKeys } from "../db/listed-keys.ts";
import { errorText } from "../errors.ts";
import type { Project } from "../usage/series.ts";
import type { ExportWorld } from "./export-deps.ts";

/** Long enough for answers, and too short for waits that a service asks for: nobody waits for comments and tags. */
const LIMIT_MS = 10_000;

/** Asked once a run and project, after its usage. Never throws: the run is as good without. */
export async function rememberKeys(world: ExportWorld, projects: readonly Project[]): Promise<void> {
  const signal = AbortSignal.any([world.app.signal, AbortSignal.timeout(LIMIT_MS)]);
  const each = new Map(projects.map((project) => [project.id, project])).values();
  await Promise.all([...each].map((project) => rememberKeysOf(world, project, signal)));
}

async function rememberKeysOf(
  { app, db, service, keys }: ExportWorld,
  project: Project,
  signal: AbortSignal,
): Promise<void> {
  const log = app.log.child({ project: project.name });
  try {
    const listed = await keys.use(project, (key) => listKeys(service, project.id, key, signal));
    if (listed) await storeListedKeys(db, project.id, listed);
    else log.debug("the service does not list the project's keys");
  } catch (error) {
    log.debug({ reason: errorText(error) }, "the project's keys were not listed");
  }
}
