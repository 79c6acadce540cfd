// Finds out whether the service knows the features of a filter before usage is asked for by them: a name that is none would be
// answered with numbers for another question.

import { fetchBreakdown } from "../api/breakdown.ts";
import { type Fields, fetchFields, NAMED_FEATURES } from "../api/fields.ts";
import type { Service } from "../api/http.ts";
import type { App } from "../app.ts";
import { didYouMean } from "../config/near-miss.ts";
import type { Database } from "../db/database.ts";
import { type ListedName, listedNames, storeListedNames } from "../db/listed-names.ts";
import { rememberAnswers } from "../remembered.ts";
import { dayOf, type Window } from "../usage/day.ts";
import { unknownFeatures } from "../usage/features.ts";
import { type DayTotals, dayTotals, effectOf } from "../usage/filter-effect.ts";
import { normalise } from "../usage/normalise.ts";
import type { ExportJob, UsageRequest } from "../usage/plan.ts";
import type { Filter, Project } from "../usage/series.ts";
import type { KeyRing } from "./keys-in-use.ts";

export type Strictness = ExportJob["checkFeatures"];

export type FeatureDeps = {
  readonly app: Pick<App, "log" | "signal">;
  /** Where it is away, nothing is remembered from one run to the next. */
  readonly db: Database | undefined;
  readonly service: Service;
  readonly keys: KeyRing;
};

/**
 * - `ignored`: with it the numbers are those of all usage
 * - `unproved`: never listed, and the numbers don't tell: there is no usage, or none with it
 */
export type FeatureFinding = {
  readonly feature: string;
  readonly state: "ignored" | "unproved";
  /** "; did you mean …?", or nothing. */
  readonly guess: string;
};

export type FeatureCheck = {
  /** Of the features that are neither named in the interface nor ever listed, those that are not proved by their numbers. */
  readonly findings: (
    project: Project,
    filter: Filter,
    window: Window | undefined,
  ) => Promise<readonly FeatureFinding[]>;
  /** Why a request must not be made; undefined where it may. Throws what kept the features from being found out. */
  readonly refusalOf: (request: UsageRequest, strictness: Strictness) => Promise<string | undefined>;
};

const ALL_USAGE: Filter = { name: "all", features: {}, dimensions: {} };

/** Asks once for what several requests need to know. What can't be found out fails the requests that wait for it, and no others. */
export function openFeatureCheck(deps: FeatureDeps): FeatureCheck {
  const { app, db, service, keys } = deps;
  const listed = rememberAnswers<Fields | undefined>();
  const stored = rememberAnswers<readonly ListedName[]>();
  const totals = rememberAnswers<DayTotals>();
  const states = rememberAnswers<FeatureFinding["state"] | "known">();
  /** By project and name, in whatever window the numbers showed it. */
  const proved = new Set<string>();

  async function findings(project: Project, filter: Filter, window: Window | undefined): Promise<FeatureFinding[]> {
    const unnamed = unknownFeatures(filter, NAMED_FEATURES);
    if (unnamed.length === 0) return [];
    const before = (await stored(project.id, async () => (db ? listedNames(db, project.id) : []))).flatMap(
      ({ kind, name }) => (kind === "feature" ? [name] : []),
    );
    if (unnamed.every((feature) => before.includes(feature))) return [];
    const now = (await listed(project.id, () => askFields(project)))?.features ?? [];
    const known = [...NAMED_FEATURES, ...before, ...now];
    const found: FeatureFinding[] = [];
    for (const feature of unknownFeatures(filter, known)) {
      // Without a feature that nobody uses the numbers are those of all usage, known or not.
      const value = filter.features[feature] === "false" ? "true" : (filter.features[feature] ?? "true");
      if (proved.has(JSON.stringify([project.id, feature]))) continue;
      const key = JSON.stringify([project.id, window, feature, value]);
      const state = await states(key, () => probe(project, window, feature, value));
      if (state !== "known") found.push({ feature, state, guess: didYouMean(feature, known) });
    }
    return found;
  }

  async function askFields(project: Project): Promise<Fields | undefined> {
    const fields = await keys.use(project, (key) => fetchFields(service, project.id, key, app.signal));
    if (!fields?.features) {
      app.log.warn(
        { project: project.name },
        "the service does not list its features: only the numbers show what it knows",
      );
    }
    if (db && fields) await storeListedNames(db, project.id, namesOf(fields));
    return fields;
  }

  /** Whether the numbers show that the service knows the feature. */
  async function probe(project: Project, window: Window | undefined, feature: string, value: string) {
    const total = await totals(JSON.stringify([project.id, window]), () => read(project, window, ALL_USAGE));
    const narrowed = await read(project, window, { ...ALL_USAGE, features: { [feature]: value } });
    const effect = effectOf(total, narrowed);
    if (effect === "same") return "ignored";
    if (effect !== "narrower") return "unproved";
    proved.add(JSON.stringify([project.id, feature]));
    if (db) await storeListedNames(db, project.id, [{ kind: "feature", name: feature, modelId: "" }]);
    return "known";
  }

  async function read(project: Project, window: Window | undefined, filter: Filter): Promise<DayTotals> {
    const request: UsageRequest = { series: { project, grouping: "none", filter }, window };
    const answer = await keys.use(project, (key) => fetchBreakdown(service, request, key, app.signal));
    return dayTotals(normalise(request, answer, dayOf(new Date())));
  }

  return {
    findings,
    async refusalOf({ series: { project, filter }, window }, strictness) {
      if (strictness === "off") return undefined;
      const found = await findings(project, filter, window);
      const ignored = found.find(({ state }) => state === "ignored");
      if (ignored && strictness === "error") return ignoredText(ignored);
      for (const { feature, state } of found) {
        app.log.warn({ project: project.name, filter: filter.name, feature, state }, "feature unknown to the service");
      }
      return undefined;
    },
  };
}

export function ignoredText({ feature, guess }: FeatureFinding): string {
  const proof = "ith it the numbers are those of all usage";
  return `the service knows no feature "${feature}"${guess === "" ? `: w${proof}` : `${guess} W${proof}`}`;
}

function namesOf({ features = [], models = [] }: Fields): ListedName[] {
  return [
    ...features.map((name) => ({ kind: "feature", name, modelId: "" }) as const),
    ...models.map(({ name, id }) => ({ kind: "model", name, modelId: id ?? "" }) as const),
  ];
}
