// Asks each project which features it knows before usage is asked for by them: a name that is none would be answered with
// numbers for another question.

import { fetchFields } from "../api/fields.ts";
import { didYouMean } from "../config/near-miss.ts";
import { rememberAnswers } from "../remembered.ts";
import { unknownFeatures } from "../usage/features.ts";
import type { ExportJob, UsageRequest } from "../usage/plan.ts";
import type { Project } from "../usage/series.ts";
import type { ExportWorld } from "./export-deps.ts";

type Strictness = ExportJob["checkFeatures"];

export type FeatureCheck = {
  /** Asks for all that these requests depend on. What can't be found out fails when it is needed. */
  readonly askFirst: (requests: readonly UsageRequest[], strictness: Strictness) => Promise<void>;
  /** Why a request must not be made; undefined where it may. Throws what kept the features from being found out. */
  readonly refusalOf: (request: UsageRequest, strictness: Strictness) => Promise<string | undefined>;
};

/** Asks a project once, when it is first needed: what can't be found out fails the requests that wait for it, and no others. */
export function openFeatureCheck({ app, service, keys }: ExportWorld): FeatureCheck {
  const known = rememberAnswers<readonly string[] | undefined>();

  return {
    async askFirst(requests, strictness) {
      const projects = requests.filter((one) => dependsOn(one, strictness)).map(({ series }) => series.project);
      await Promise.allSettled(projects.map(featuresOf));
    },
    async refusalOf(request, strictness) {
      if (!dependsOn(request, strictness)) return undefined;
      const { project, filter } = request.series;
      const features = await featuresOf(project);
      const [unknown] = unknownFeatures(filter, features);
      if (unknown === undefined) return undefined;
      if (strictness === "error") {
        return `the service knows no feature "${unknown}" in this project, and would answer with numbers for another question${didYouMean(unknown, features ?? [])}`;
      }
      app.log.warn({ project: project.name, filter: filter.name, feature: unknown }, "feature unknown to the service");
      return undefined;
    },
  };

  function featuresOf(project: Project): Promise<readonly string[] | undefined> {
    return known(project.id, () => ask(project));
  }

  async function ask(project: Project): Promise<readonly string[] | undefined> {
    const fields = await keys.use(project, (key) => fetchFields(service, project.id, key, app.signal));
    if (!fields?.features) {
      app.log.warn({ project: project.name }, "the service does not list its features: filters are not checked");
    }
    return fields?.features;
  }
}

function dependsOn({ series: { filter } }: UsageRequest, strictness: Strictness): boolean {
  return strictness !== "off" && Object.keys(filter.features).length > 0;
}
