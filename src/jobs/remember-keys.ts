// Reads the list of API keys at the end of an export run, where the service shows it: what is deleted there is known here.

import { listKeys } from "../api/keys.ts";
import { storeListedKeys } from "../db/listed-keys.ts";
import { errorText } from "../errors.ts";
import type { Project } from "../usage/series.ts";
import type { ExportWorld } from "./export-deps.ts";

/** Long enough for an answer, and too short for waits that a service asks for: nobody waits for comments and tags. */
const LIMIT_MS = 10_000;

/** Asked once a run and project, after its usage. Never throws: the run is as good without. */
export async function rememberKeys(world: ExportWorld, projects: readonly Project[]): Promise<void> {
  for (const project of new Map(projects.map((one) => [one.id, one])).values()) await rememberKeysOf(world, project);
}

async function rememberKeysOf({ app, db, service, keys }: ExportWorld, project: Project): Promise<void> {
  const log = app.log.child({ project: project.name });
  const signal = AbortSignal.any([app.signal, AbortSignal.timeout(LIMIT_MS)]);
  try {
    const listed = await keys.use(project, (key) => listKeys(service, project.id, key, signal));
    if (listed) await storeListedKeys(db, project.id, listed);
    else log.debug("the service does not list the project's keys");
  } catch (error) {
    log.debug({ reason: errorText(error) }, "the project's keys were not listed");
  }
}
