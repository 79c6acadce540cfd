// Stores the service's list of API keys at the end of an export run, so that a deleted key keeps its comment and tags.

import { storeListedKeys } from "../db/keys/listed-keys.ts";
import { errorText } from "../errors.ts";
import { listKeys } from "../service/keys.ts";
import type { Project } from "../usage/series.ts";
import type { ExportContext } from "./export-context.ts";

/** Long enough for answers, and too short for waits that a service asks for: nobody waits for comments and tags. */
const SYNC_MS_MAX = 10_000;

/** Asked once a run and project, after its usage. Never throws: the run is as good without. */
export async function syncKeyList(context: ExportContext, projects: readonly Project[]): Promise<void> {
  const signal = AbortSignal.any([context.app.signal, AbortSignal.timeout(SYNC_MS_MAX)]);
  const each = new Map(projects.map((project) => [project.id, project])).values();
  await Promise.all([...each].map((project) => syncProjectKeyList(context, project, signal)));
}

async function syncProjectKeyList(
  { app, db, service, keys }: ExportContext,
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
