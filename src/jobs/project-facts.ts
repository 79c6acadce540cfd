// Reads what a project has beside its numbers: its API keys, and for billing its balances and the names of its line items.

import { storeBalances, storeLineItems, storeListedKeys } from "../db/project-facts.ts";
import { errorText } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { hasStatus } from "../service/answer.ts";
import { listKeys } from "../service/keys.ts";
import { fetchBalances, fetchBilledFields } from "../service/projects.ts";
import type { Service } from "../service/service.ts";
import type { Source } from "../usage/dimensions.ts";
import type { Project } from "../usage/series.ts";
import type { ExportContext } from "./context.ts";

/** Long enough for an answer. If the service asks for a longer wait (Retry-After), the reading is skipped. */
const READING_MS_MAX = 10_000;

/**
 * Reads what a project has beside its numbers, once a run: its list of API keys, so that a deleted key keeps its comment and tags. A run of
 * billing also reads its balances and the names of its line items: the key of usage alone may lack the scope. Never throws: the run has
 * succeeded without it.
 */
export async function readProjectFacts(context: ExportContext, project: Project, source: Source): Promise<void> {
  const { app, db, service, keys } = context;
  const log = app.log.child({ project: project.name });
  const signal = AbortSignal.any([app.signal, AbortSignal.timeout(READING_MS_MAX)]);
  type Fetch<T> = (service: Service, projectId: string, key: Secret, signal: AbortSignal) => Promise<T>;
  const read = async <T>(
    what: string,
    fetch: Fetch<T>,
    store: (answer: T) => Promise<void>,
    level: (error: unknown) => "debug" | "info" | "warn" = () => "debug",
  ) => {
    try {
      await store(await keys.use(project, (key) => fetch(service, project.id, key, signal)));
    } catch (error) {
      log[level(error)]({ reason: errorText(error) }, `${what} not read`);
    }
  };
  const readings = [
    read("list of keys", listKeys, async (listed) => {
      if (listed) await storeListedKeys(db, project.id, listed);
      else log.debug("the service does not list the project's keys");
    }),
  ];
  if (source === "billing") {
    readings.push(
      // The rest only adds names, but balances are numbers that a person asked for.
      read(
        "balances",
        fetchBalances,
        (balances) => storeBalances(db, project, balances),
        (error) => (hasStatus(error, [401, 403, 404]) ? "info" : "warn"),
      ),
      read("names of line items", fetchBilledFields, (fields) => storeLineItems(db, fields?.labels ?? [])),
    );
  }
  await Promise.all(readings);
}
