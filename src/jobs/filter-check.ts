// Checks that the service knows the names in a filter before usage is requested with it. A filter with an unknown feature, or
// with a tag or model that nobody has, would be answered with plausible but wrong numbers.

import { randomUUID } from "node:crypto";
import { memoizeAsync } from "../async.ts";
import { didYouMean } from "../config/suggestions.ts";
import { type ListedName, listedNames, storeListedNames } from "../db/usage/series.ts";
import { DOCUMENTED_FEATURES, fetchFields, type ListedFields } from "../service/fields.ts";
import { hasStatus } from "../service/request.ts";
import { fetchBreakdown } from "../service/usage.ts";
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
import { type NormalisedSlice, normalise } from "../usage/normalise.ts";
import type { ExportJob, UsageRequest } from "../usage/plan.ts";
import {
  ALL_USAGE,
  type Dialect,
  type Dimension,
  type Filter,
  filterKey,
  NO_CONDITIONS,
  type Project,
  unknownFeatures,
  unlistedValues,
} from "../usage/series.ts";
import type { FilterDoubt } from "../usage/slice.ts";
import type { ServiceContext } from "./export-context.ts";

export type Strictness = ExportJob["checkFeatures"];

export type FilterCheckDeps = Pick<ServiceContext, "app" | "db" | "service" | "keys" | "dialects">;

/** A name in a filter that the service is not known to know. */
export type NameFinding = {
  readonly kind: "feature" | Dimension;
  readonly name: string;
  /**
   * - `ignored`: with it the numbers are those of all usage
   * - `unlisted`: the service has never listed it, and no usage has it
   * - `ambiguous`: a model's name that stands for several models
   * - `unproved`: never listed, and there is no usage to tell by
   */
  readonly state: "ignored" | "unlisted" | "ambiguous" | "unproved";
  /** What the state means, and what to do. */
  readonly text: string;
};

export type FilterCheck = {
  readonly findings: (project: Project, filter: Filter, window: Window | undefined) => Promise<readonly NameFinding[]>;
  /** Why a request must not be made; undefined if it may be. Throws if the names could not be checked. */
  readonly refusalOf: (request: UsageRequest, strictness: Strictness) => Promise<string | undefined>;
  /** The request with the names that the service filters by: today's service takes a model's id in place of its name. */
  readonly asSent: (request: UsageRequest, dialect: Dialect) => Promise<UsageRequest>;
  /** Must have finished before a filtered request is made: the total that its answer is compared with has to be older. */
  readonly readTotal: (request: UsageRequest, strictness: Strictness) => Promise<void>;
  /** Why the numbers of an answer may not be those of the filter. */
  readonly doubtOf: (
    request: UsageRequest,
    slices: readonly NormalisedSlice[],
    dialect: Dialect,
    strictness: Strictness,
  ) => Promise<FilterDoubt | undefined>;
};

/** Asks once for what several requests need to know. A failed check fails only the requests that wait for it. */
export function openFilterCheck(deps: FilterCheckDeps): FilterCheck {
  const { app, dialects } = deps;
  const names = openKnownNames(deps);
  const read = openTotals(deps, names);
  const effects = memoizeAsync<Effect>();
  const ignored = memoizeAsync<boolean>();

  /** What the condition alone does to the numbers of the window. */
  function effect(project: Project, window: Window | undefined, part: Partial<Filter>, dialect?: Dialect) {
    return effects(JSON.stringify([project.id, window, part, dialect]), async () =>
      effectOf(await read(project, window, {}, dialect), await read(project, window, part, dialect)),
    );
  }

  async function featureFinding(project: Project, filter: Filter, window: Window | undefined, name: string) {
    const { matches, others } = await names.find(project, "feature", name);
    if (matches.length > 0) return undefined;
    // If nobody uses the feature, `false` gives the numbers of all usage whether the service knows the feature or not, so `true`
    // is asked.
    const value = filter.features[name] === "false" ? "true" : (filter.features[name] ?? "true");
    const shown = await effect(project, window, { features: { [name]: value } });
    if (shown === "narrower") return void (await names.prove(project, "feature", name));
    const guess = didYouMean(name, [...DOCUMENTED_FEATURES, ...others]);
    const state = shown === "same" ? "ignored" : "unproved";
    return { kind: "feature", name, state, text: featureText(name, guess, state) } as const;
  }

  async function valueFinding(
    { project, kind, name, window }: FilterValue,
    dialect: Dialect,
  ): Promise<NameFinding | undefined> {
    const { matches, others, isListed } = await names.find(project, kind === "tags" ? "tag" : kind, name);
    const ids = idsOf(matches, name);
    const sameName = `${ids.length} models are called "${name}" (${ids.slice(0, 5).join(", ")}): filter by the id of one`;
    if (kind === "model" && dialect === "2026" && ids.length > 1)
      return { kind, name, state: "ambiguous", text: sameName };
    if (matches.length > 0) return undefined;
    const shown = await effect(project, window, { dimensions: { [kind]: name } }, dialect);
    if (shown === "narrower") return void (await names.prove(project, kind === "tags" ? "tag" : kind, name));
    if (shown === "empty" && !isListed) return undefined;
    const guess = didYouMean(name, others);
    const state = shown === "same" ? "ignored" : shown === "empty" ? "unlisted" : "unproved";
    return { kind, name, state, text: valueText(kind, name, guess, state) };
  }

  async function valueFindings(project: Project, filter: Filter, window: Window | undefined): Promise<NameFinding[]> {
    const found: NameFinding[] = [];
    for (const kind of ["model", "tags"] as const) {
      const name = filter.dimensions[kind];
      if (name === undefined) continue;
      const value: FilterValue = { project, kind, name, window };
      const request: UsageRequest = { series: { project, grouping: "none", filter }, window };
      const dialect = await dialects.forRequest(request);
      let finding = await valueFinding(value, dialect);
      const other = finding && (await dialects.alternative(request, dialect));
      if (other !== undefined) finding = await valueFinding(value, other);
      if (finding) found.push(finding);
    }
    return found;
  }

  async function findings(project: Project, filter: Filter, window: Window | undefined): Promise<NameFinding[]> {
    const found: NameFinding[] = unlistedValues(filter).map(({ dimension, value, listed }) => ({
      kind: dimension,
      name: value,
      state: "unlisted",
      text: `"${value}" is no ${dimension} that the interface names (${listed.join(", ")})${didYouMean(value, listed)}`,
    }));
    for (const name of unknownFeatures(filter, DOCUMENTED_FEATURES)) {
      const finding = await featureFinding(project, filter, window, name);
      if (finding) found.push(finding);
    }
    return [...found, ...(await valueFindings(project, filter, window))];
  }

  return {
    findings,
    async refusalOf({ series: { project, filter }, window }, strictness) {
      if (strictness === "off") return undefined;
      const found = await findings(project, filter, window);
      const wrong = found.find(isRejected);
      if (wrong && (strictness === "error" || wrong.state === "ambiguous")) return wrong.text;
      for (const { kind, name, state } of found) {
        const log = { project: project.name, filter: filter.name, [kind]: name, state };
        app.log.warn(log, `${kind} unknown to the service`);
      }
      return undefined;
    },
    asSent: (request, dialect) => asSent(names, request, dialect),
    async readTotal({ series: { project, filter }, window }, strictness) {
      if (isCompared(filter, strictness)) await read(project, window, {});
    },
    async doubtOf({ series: { project, filter }, window }, slices, dialect, strictness) {
      // An answer that names no day can't be compared with the total of a day.
      if (!isCompared(filter, strictness) || slices.some(({ undated }) => undated)) return undefined;
      const total = await read(project, window, {});
      const shown = effectOf(total, dayTotals(slices));
      if (shown === "no usage") return undefined;
      if (shown === "empty") return total.size < SEVERAL_DAYS ? undefined : emptyDoubt(total.size);
      const opposites = oppositesOf(filter, randomUUID());
      // If there are several conditions, one may be ignored although the numbers differ from those of all usage.
      const doubtful =
        shown === "same" ? opposites : opposites.length > 1 ? opposites.filter((one) => one.hasOtherDialectName) : [];
      for (const opposite of doubtful) {
        if (await isIgnoredBy(opposite)) return ignoredDoubt(opposite, strictness);
      }
      return undefined;

      function isIgnoredBy({ condition, kind, filter: turned }: Opposite): Promise<boolean> {
        const key = JSON.stringify([project.id, window, dialect, condition]);
        return ignored(key, async () => {
          try {
            return isIgnored(kind, effectOf(total, await read(project, window, turned, dialect)));
          } catch (error) {
            // A service that refuses the value knows the name.
            if (hasStatus(error, [400, 422])) return false;
            throw error;
          }
        });
      }
    },
  };
}

/** On a single day it is plausible that nobody used it. */
const SEVERAL_DAYS = 2;

function isCompared(filter: Filter, strictness: Strictness): boolean {
  return strictness !== "off" && filterKey(filter) !== NO_CONDITIONS;
}

function emptyDoubt(days: number): FilterDoubt {
  const reason = `no usage with the filter on any of ${days} days on which there is usage; it counts when a run at least an hour later gets the same`;
  return { kind: "filter-empty", reason, isConfirmable: true };
}

function ignoredDoubt({ condition, kind }: Opposite, strictness: Strictness): FilterDoubt {
  const turned = kind === "feature" ? "with it turned round" : "with a value that nobody has";
  const reason = `the service seems to ignore ${condition}: ${turned} it answers usage all the same; it may know the filter by another name (service.dialect)`;
  return { kind: "filter-ignored", reason, isConfirmable: strictness === "warn" };
}

/** Whether the name must not be asked for. Otherwise it is only checked again by the next run. */
export function isRejected({ state }: NameFinding): boolean {
  return state !== "unproved";
}

type FilterValue = {
  readonly project: Project;
  readonly kind: "model" | "tags";
  readonly name: string;
  readonly window: Window | undefined;
};

/** Reads ungrouped usage, each series once. All usage is read first, because what is compared with it must be younger. */
function openTotals({ app, service, keys, dialects }: FilterCheckDeps, names: KnownNames) {
  const totals = memoizeAsync<DayTotals>();
  return (project: Project, window: Window | undefined, part: Partial<Filter>, dialect?: Dialect): Promise<DayTotals> =>
    totals(JSON.stringify([project.id, window, part, dialect]), async () => {
      const request: UsageRequest = {
        series: { project, grouping: "none", filter: { ...ALL_USAGE, ...part } },
        window,
      };
      const used = dialect ?? (await dialects.forRequest(request));
      const sent = await asSent(names, request, used);
      const answer = await keys.use(project, (key) =>
        fetchBreakdown(service, sent, key, app.signal, { dialect: used }),
      );
      return dayTotals(normalise(request, answer, dayOf(new Date())));
    });
}

async function asSent(names: KnownNames, request: UsageRequest, dialect: Dialect): Promise<UsageRequest> {
  const { series } = request;
  const { model } = series.filter.dimensions;
  if (dialect !== "2026" || model === undefined) return request;
  const { matches } = await names.find(series.project, "model", model);
  const [id, another] = idsOf(matches, model);
  // If the name has several ids, choosing one would be a guess. A model that is given by its id stays as it is.
  if (id === undefined || another !== undefined) return request;
  const filter = { ...series.filter, dimensions: { ...series.filter.dimensions, model: id } };
  return { ...request, series: { ...series, filter } };
}

/** The ids that a model's name or id stands for. */
function idsOf(matches: readonly { readonly name: string; readonly modelId: string }[], wanted: string): string[] {
  if (matches.some(({ modelId }) => modelId === wanted)) return [wanted];
  return [...new Set(matches.flatMap(({ modelId }) => (modelId === "" ? [] : [modelId])))];
}

const SAME_NUMBERS = "ith it the numbers are those of all usage";

function featureText(name: string, guess: string, state: "ignored" | "unproved"): string {
  if (state === "ignored") {
    return `the service knows no feature "${name}"${guess === "" ? `: w${SAME_NUMBERS}` : `${guess} W${SAME_NUMBERS}`}`;
  }
  return `the service has never listed the feature "${name}", and no recent usage shows that it knows it${guess}`;
}

function valueText(kind: FilterValue["kind"], name: string, guess: string, state: NameFinding["state"]): string {
  const what = kind === "tags" ? `tag "${name}"` : `model "${name}"`;
  if (state === "ignored") {
    return `the service does not narrow by the ${what}: w${SAME_NUMBERS}; it may know the filter by another name (service.dialect)`;
  }
  const never = `the service has never listed the ${what}`;
  return state === "unlisted"
    ? `${never}, and there is no usage with it${guess}`
    : `${never}, and there is no usage to tell by${guess}`;
}

// The names that the service knows for a project: those that Get Fields lists now or ever listed, and those that the numbers
// proved.

type FoundNames = {
  /** Empty if the name is not known. For a model: all models with that name, or the one with that id. */
  readonly matches: readonly ListedName[];
  /** Known names of the same kind, to suggest what was meant. */
  readonly others: readonly string[];
  /** False if the service lists no names of this kind: then an unknown name proves nothing. */
  readonly isListed: boolean;
};

type KnownNames = {
  readonly find: (project: Project, kind: ListedName["kind"], name: string) => Promise<FoundNames>;
  /** Records that the numbers have shown that the service knows the name. */
  readonly prove: (project: Project, kind: ListedName["kind"], name: string) => Promise<void>;
};

/** Asks once for each project. A failed request fails only the callers that wait for it. */
function openKnownNames({ app, db, service, keys }: FilterCheckDeps): KnownNames {
  const listed = memoizeAsync<ListedFields | undefined>();
  const stored = memoizeAsync<readonly ListedName[]>();
  const proved = new Map<string, ListedName[]>();

  async function before(project: Project): Promise<readonly ListedName[]> {
    const known = await stored(project.id, async () => (db ? listedNames(db, project.id) : []));
    return [...known, ...(proved.get(project.id) ?? [])];
  }

  async function askFields(project: Project): Promise<ListedFields | undefined> {
    const fields = await keys.use(project, (key) => fetchFields(service, project.id, key, app.signal));
    if (!fields?.features) {
      app.log.warn(
        { project: project.name },
        "the service does not list its features: only the numbers show what it knows",
      );
    }
    // There may be many tags, and new ones every day, so only those that a filter names are stored.
    if (db && fields)
      await storeListedNames(db, project.id, [...listedNamesOf(fields, "feature"), ...listedNamesOf(fields, "model")]);
    return fields;
  }

  return {
    async find(project, kind, name) {
      const earlier = (await before(project)).filter((one) => one.kind === kind);
      const known = earlier.filter((one) => isNamed(one, name));
      // A model has another id in each version, and a filter means the version in use now, so models are always asked for.
      if (known.length > 0 && kind !== "model") return { matches: known, others: [], isListed: true };
      const fields = await listed(project.id, () => askFields(project));
      const now = listedNamesOf(fields ?? {}, kind);
      const matches = now.filter((one) => isNamed(one, name));
      if (db && kind === "tag") await storeListedNames(db, project.id, matches);
      return {
        matches: matches.length > 0 ? matches : known,
        others: [...now, ...earlier].map((one) => one.name),
        isListed: fields?.[`${kind}s`] !== undefined,
      };
    },
    async prove(project, kind, name) {
      const names: ListedName[] = [{ kind, name, modelId: "" }];
      proved.set(project.id, [...(proved.get(project.id) ?? []), ...names]);
      if (db) await storeListedNames(db, project.id, names);
    },
  };
}

/** The service's own example lists the tag "dev" as "tag=dev". */
function isNamed({ kind, name, modelId }: ListedName, wanted: string): boolean {
  if (name === wanted) return true;
  return (kind === "tag" && name === `tag=${wanted}`) || (kind === "model" && modelId === wanted);
}

function listedNamesOf(fields: Partial<ListedFields>, kind: ListedName["kind"]): ListedName[] {
  if (kind === "model") return (fields.models ?? []).map(({ name, id }) => ({ kind, name, modelId: id ?? "" }));
  return (fields[`${kind}s`] ?? []).map((name) => ({ kind, name, modelId: "" }));
}
