// Checks that the service knows the names in a filter before usage is requested with it. A filter with an unknown feature, or
// with a tag or model that nobody has, would be answered with plausible but wrong numbers.

import { randomUUID } from "node:crypto";
import { memoizeAsync } from "../async.ts";
import { didYouMean } from "../config/suggestions.ts";
import { errorText } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { hasStatus } from "../service/answer.ts";
import { DOCUMENTED_FEATURES } from "../service/fields.ts";
import { fetchBreakdown } from "../service/usage.ts";
import type { NormalisedSlice } from "../usage/columns.ts";
import { dayOf, type Window } from "../usage/days.ts";
import {
  type DayTotals,
  dayTotals,
  type Effect,
  effectOf,
  isIgnored,
  type Opposite,
  oppositesOf,
} from "../usage/filter-effect.ts";
import { normalise } from "../usage/normalise.ts";
import type { ExportJob, UsageRequest } from "../usage/plan.ts";
import {
  ALL_USAGE,
  BILLING_DIMENSIONS,
  type Dialect,
  type Dimension,
  type Filter,
  filterKey,
  NO_CONDITIONS,
  type Project,
  type Source,
  unknownFeatures,
  unlistedValues,
} from "../usage/series.ts";
import type { FilterDoubt } from "../usage/slice.ts";
import type { ServiceContext } from "./export-context.ts";
import { type KnownNames, openKnownNames } from "./known-names.ts";

export type Strictness = ExportJob["checkFeatures"];

export type FilterCheckDeps = Pick<ServiceContext, "app" | "db" | "service" | "keys" | "dialects">;

/** A name in a filter that the service may not know, or may know as the name of several models. */
export type NameFinding = {
  readonly kind: "feature" | Dimension;
  readonly name: string;
  /**
   * - `ignored`: with it the numbers are those of all usage
   * - `unlisted`: the service has never listed it, and no usage has it
   * - `ambiguous`: a model's name that stands for several models
   * - `unproved`: the service has never listed it, and there is no usage that could show whether the service knows it
   */
  readonly state: "ignored" | "unlisted" | "ambiguous" | "unproved";
  /** What the state means, and what to do. */
  readonly text: string;
};

type Scope = { readonly project: Project; readonly source: Source; readonly window: Window | undefined };

/** An empty answer is doubted only if this many days have usage: on a single day it is plausible that nothing fits the filter. */
const SEVERAL_DAYS = 2;

/** Keeps the names and totals that several requests need, so that each is requested once. If that fails, only the waiting callers fail. */
export class FilterCheck {
  readonly #deps: FilterCheckDeps;
  readonly #names: KnownNames;
  readonly #totals = memoizeAsync<DayTotals>();
  readonly #ignored = memoizeAsync<boolean>();
  /** By project id, why the service refused billing, and would refuse it again. */
  readonly #noBilling = new Map<string, string>();

  constructor(deps: FilterCheckDeps) {
    this.#deps = deps;
    this.#names = openKnownNames(deps);
  }

  /** Why a request must not be made; undefined if it may be. Throws if the names could not be checked. */
  async refusalOf(
    { series: { project, source, filter }, window }: UsageRequest,
    strictness: Strictness,
  ): Promise<string | undefined> {
    const refused = source === "billing" ? this.#noBilling.get(project.id) : undefined;
    if (refused !== undefined || strictness === "off") return refused;
    const found = await this.findings({ project, source, window }, filter);
    const wrong = found.find(isRejected);
    if (wrong && (strictness === "error" || wrong.state === "ambiguous")) return wrong.text;
    for (const { kind, name, state: nameState } of found) {
      const fields = { project: project.name, filter: filter.name, [kind]: name, state: nameState };
      this.#deps.app.log.warn(fields, `${kind} unknown to the service`);
    }
    return undefined;
  }

  /** Called with the failure of a request: a service without billing is asked for it once a run, and not once for each request. */
  noteFailure({ project, source }: Pick<Scope, "project" | "source">, error: unknown): void {
    if (source === "billing" && hasStatus(error, [404])) this.#noBilling.set(project.id, errorText(error));
  }

  /** The names in the filter that the service may not know. */
  async findings(scope: Scope, filter: Filter): Promise<NameFinding[]> {
    // The service has answered a value that was seen in usage: it knows it, whatever it lists.
    if (filter.isSeen) return [];
    const findings: NameFinding[] = unlistedValues(filter, scope.source).map(({ dimension, value, listed }) => ({
      kind: dimension,
      name: value,
      state: "unlisted",
      text: `"${value}" is no ${dimension} that the interface names (${listed.join(", ")})${didYouMean(value, listed)}`,
    }));
    for (const name of unknownFeatures(filter, DOCUMENTED_FEATURES)) {
      findings.push(...(await this.#featureFindings(scope, filter, name)));
    }
    for (const kind of scope.source === "billing" ? BILLING_DIMENSIONS : (["model", "tags"] as const)) {
      const name = filter.dimensions[kind];
      if (name === undefined) continue;
      const request: UsageRequest = {
        series: { project: scope.project, source: scope.source, grouping: "none", filter },
        window: scope.window,
      };
      const dialect = await this.#deps.dialects.forRequest(request);
      const found = await this.#valueFindings(scope, kind, name, dialect);
      const other = found.length > 0 ? await this.#deps.dialects.alternative(request, dialect) : undefined;
      findings.push(...(other === undefined ? found : await this.#valueFindings(scope, kind, name, other)));
    }
    return findings;
  }

  async #featureFindings(scope: Scope, filter: Filter, name: string): Promise<NameFinding[]> {
    const names = this.#names;
    const { matches, others } = await names.find(scope.project, "feature", name);
    if (matches.length > 0) return [];
    // If nobody uses the feature, `false` gives the numbers of all usage whether the service knows the feature or not, so `true`
    // is requested.
    const value = filter.features[name] === "false" ? "true" : (filter.features[name] ?? "true");
    const shown = await this.#effect(scope, { features: { [name]: value } });
    if (shown === "narrower") {
      await names.prove(scope.project, "feature", name);
      return [];
    }
    const guess = didYouMean(name, [...DOCUMENTED_FEATURES, ...others]);
    if (shown === "same") {
      const text = `the service knows no feature "${name}"${guess === "" ? `: w${SAME_NUMBERS}` : `${guess} W${SAME_NUMBERS}`}`;
      return [{ kind: "feature", name, state: "ignored", text }];
    }
    const text = `the service has never listed the feature "${name}", and no recent usage shows that it knows it${guess}`;
    return [{ kind: "feature", name, state: "unproved", text }];
  }

  async #valueFindings(scope: Scope, kind: Dimension, name: string, dialect: Dialect): Promise<NameFinding[]> {
    const names = this.#names;
    const { project, source } = scope;
    const listedKind = kind === "model" ? kind : "tag";
    const { matches, others, isListed } =
      source === "billing" ? await names.findBilled(project, kind, name) : await names.find(project, listedKind, name);
    const ids = idsOf(matches, name);
    if (kind === "model" && dialect === "2026" && ids.length > 1) {
      const text = `${ids.length} models are called "${name}" (${ids.slice(0, 5).join(", ")}): filter by the id of one`;
      return [{ kind, name, state: "ambiguous", text }];
    }
    if (matches.length > 0) return [];
    const shown = await this.#effect(scope, { dimensions: { [kind]: name } }, dialect);
    if (shown === "narrower" && source === "usage") await names.prove(project, listedKind, name);
    if (shown === "narrower" || (shown === "empty" && !isListed)) return [];
    const what = `${kind === "tags" ? "tag" : kind} "${name}"`;
    const never = `the service has never listed the ${what}`;
    const guess = didYouMean(name, others);
    const findings = {
      same: {
        state: "ignored",
        text: `the service does not narrow by the ${what}: w${SAME_NUMBERS}; it may know the filter by another name (service.dialect)`,
      },
      empty: { state: "unlisted", text: `${never}, and there is no usage with it${guess}` },
      "no usage": { state: "unproved", text: `${never}, and there is no usage to tell by${guess}` },
    } as const;
    return [{ kind, name, ...findings[shown] }];
  }

  /** The request with the names that the service filters by: in dialect "2026" a model's id in place of its name. */
  async asSent(request: UsageRequest, dialect: Dialect): Promise<UsageRequest> {
    const { series } = request;
    const { model } = series.filter.dimensions;
    if (dialect !== "2026" || model === undefined) return request;
    const { matches } = await this.#names.find(series.project, "model", model);
    const [id, another] = idsOf(matches, model);
    // If the name has several ids, choosing one would be a guess. A model that is given by its id stays as it is.
    if (id === undefined || another !== undefined) return request;
    const filter = { ...series.filter, dimensions: { ...series.filter.dimensions, model: id } };
    return { ...request, series: { ...series, filter } };
  }

  /**
   * Reads the total that the answer to a filtered request is compared with. Must have finished before that request is made, because the
   * total has to be the older of the two.
   */
  async readTotal({ series, window }: UsageRequest, strictness: Strictness): Promise<void> {
    const { project, source, filter } = series;
    if (isCompared(filter, strictness)) await this.#readTotals({ project, source, window }, {});
  }

  /** Why the numbers of an answer may not be those of the filter; undefined if there is no doubt. */
  async doubtOf(
    { series: { project, source, filter }, window }: UsageRequest,
    slices: readonly NormalisedSlice[],
    dialect: Dialect,
    strictness: Strictness,
  ): Promise<FilterDoubt | undefined> {
    // An answer that names no day can't be compared with the total of a day.
    if (!isCompared(filter, strictness) || slices.some(({ undated }) => undated)) return undefined;
    const scope = { project, source, window };
    const total = await this.#readTotals(scope, {});
    const shown = effectOf(total, dayTotals(slices));
    if (shown === "no usage") return undefined;
    if (shown === "empty") return total.size < SEVERAL_DAYS ? undefined : emptyDoubt(total.size, source);
    const opposites = oppositesOf(filter, randomUUID());
    // If there are several conditions, one may be ignored although the numbers differ from those of all usage.
    const doubtful =
      shown === "same" ? opposites : opposites.length > 1 ? opposites.filter((one) => one.hasOtherDialectName) : [];
    for (const opposite of doubtful) {
      const key = JSON.stringify([project.id, source, window, dialect, opposite.condition]);
      const ignored = await this.#ignored(key, () => this.#isIgnoredBy(scope, total, opposite, dialect));
      if (ignored) return ignoredDoubt(opposite, strictness, source);
    }
    return undefined;
  }

  async #isIgnoredBy(scope: Scope, total: DayTotals, { kind, filter }: Opposite, dialect: Dialect): Promise<boolean> {
    try {
      return isIgnored(kind, effectOf(total, await this.#readTotals(scope, filter, dialect)));
    } catch (error) {
      // A service that refuses the value knows the name.
      if (hasStatus(error, [400, 422])) return false;
      throw error;
    }
  }

  /** What these conditions alone do to the numbers. All usage is read first, because the total has to be the older of the two. */
  async #effect(scope: Scope, conditions: Partial<Filter>, dialect?: Dialect): Promise<Effect> {
    const all = await this.#readTotals(scope, {}, dialect);
    return effectOf(all, await this.#readTotals(scope, conditions, dialect));
  }

  /** Reads ungrouped usage under these conditions. The same usage is requested only once. */
  #readTotals(scope: Scope, conditions: Partial<Filter>, dialect?: Dialect): Promise<DayTotals> {
    const { app, service, keys, dialects } = this.#deps;
    const { project, source, window } = scope;
    return this.#totals(JSON.stringify([project.id, source, window, conditions, dialect]), async () => {
      const series = { project, source, grouping: "none", filter: { ...ALL_USAGE, ...conditions } } as const;
      const used = dialect ?? (await dialects.forRequest({ series, window }));
      const sent = await this.asSent({ series, window }, used);
      const call = (key: Secret) => fetchBreakdown(service, sent, key, app.signal, { dialect: used });
      try {
        return dayTotals(normalise(sent, await keys.use(project, call), dayOf(new Date())));
      } catch (error) {
        this.noteFailure(scope, error);
        throw error;
      }
    });
  }
}

/** Whether the name is a reason not to make the request. An unproved name is none: the next run checks it again. */
export function isRejected({ state }: NameFinding): boolean {
  return state !== "unproved";
}

/** The ids that a model's name or id stands for. */
function idsOf(matches: readonly { readonly name: string; readonly modelId: string }[], wanted: string): string[] {
  if (matches.some(({ modelId }) => modelId === wanted)) return [wanted];
  return [...new Set(matches.flatMap(({ modelId }) => (modelId === "" ? [] : [modelId])))];
}

const SAME_NUMBERS = "ith it the numbers are those of all usage";

function isCompared(filter: Filter, strictness: Strictness): boolean {
  return strictness !== "off" && filterKey(filter) !== NO_CONDITIONS;
}

function emptyDoubt(days: number, source: Source): FilterDoubt {
  const [none, some] = source === "billing" ? ["no amount", "are amounts"] : ["no usage", "is usage"];
  const reason = `${none} with the filter on any of ${days} days on which there ${some}; it counts when a run at least an hour later gets the same`;
  return { kind: "filter-empty", reason, isConfirmable: true };
}

function ignoredDoubt({ condition, kind }: Opposite, strictness: Strictness, source: Source): FilterDoubt {
  const opposite = kind === "feature" ? "with the opposite value" : "with a value that nobody has";
  const reason = `the service seems to ignore ${condition}: ${opposite} it answers ${source === "billing" ? "amounts" : "usage"} all the same; it may know the filter by another name (service.dialect)`;
  return { kind: "filter-ignored", reason, isConfirmable: strictness === "warn" };
}
