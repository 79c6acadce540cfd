// Checks whether the numbers of an answer are those of its filter. The service validates no parameter: a filter by a misspelt feature,
// by a tag that nobody has, or by a name of the other dialect is answered with plausible but wrong numbers.

import { randomUUID } from "node:crypto";
import { memoizeAsync } from "../async.ts";
import { didYouMean } from "../config/messages.ts";
import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { hasStatus } from "../service/answer.ts";
import {
  type BilledFields,
  DOCUMENTED_FEATURES,
  fetchBilledFields,
  fetchFields,
  type ListedFields,
} from "../service/projects.ts";
import { fetchBreakdown } from "../service/usage.ts";
import { type Day, dayOf, type Window } from "../usage/days.ts";
import {
  BILLING_DIMENSIONS,
  DIMENSIONS,
  type Dialect,
  type Dimension,
  documentedValues,
  hasOtherName2026,
  type Source,
} from "../usage/dimensions.ts";
import { normalise } from "../usage/normalise.ts";
import type { ExportJob, UsageRequest } from "../usage/plan.ts";
import type { NormalisedSlice } from "../usage/rows.ts";
import { ALL_USAGE, type Filter, filterKey, NO_CONDITIONS, type Project, type Series } from "../usage/series.ts";
import type { FilterDoubt } from "../usage/slice.ts";
import type { ServiceContext } from "./context.ts";

export type Strictness = ExportJob["checkFeatures"];

export type FilterCheckDeps = Pick<ServiceContext, "app" | "service" | "keys" | "dialects">;

/** A name in a filter that the service does not list, so that only the numbers can show whether it knows it. */
export type UnknownName = {
  readonly condition: Condition;
  /** False if the service lists no names of this kind. */
  readonly isListed: boolean;
  /** What is known of it, and what may have been meant. */
  readonly text: string;
};

type Scope = { readonly project: Project; readonly source: Source; readonly window: Window | undefined };

/** An empty answer for known names is doubted only from two days on: on a single day it is plausible that nothing fits the filter. */
const SEVERAL_DAYS = 2;

/** Keeps the names and totals that several requests of a run need, so that each is requested once. If that fails, only the waiting callers fail. */
export class FilterCheck {
  readonly #deps: FilterCheckDeps;
  readonly #fields = memoizeAsync<ListedFields | undefined>();
  readonly #billed = memoizeAsync<BilledFields | undefined>();
  readonly #totals = memoizeAsync<DayTotals>();
  readonly #ignored = memoizeAsync<boolean>();

  constructor(deps: FilterCheckDeps) {
    this.#deps = deps;
  }

  /** The names in the filter that the service does not list for the project. */
  async unknownNames({
    project,
    source,
    filter,
  }: Pick<Series, "project" | "source" | "filter">): Promise<UnknownName[]> {
    // A value that was seen in usage came from the service itself.
    if (filter.isSeen) return [];
    const unknown: UnknownName[] = [];
    for (const condition of conditionsOf(filter)) {
      const names = await this.#namesFor(project, source, condition);
      if (!names || names.known.includes(condition.name)) continue;
      const { known, isListed } = names;
      const guess = didYouMean(condition.name, known);
      const text = `the service ${isListed ? "does not list" : "does not say whether it knows"} the ${condition.text}${guess}`;
      unknown.push({ condition, isListed, text });
    }
    return unknown;
  }

  /** The names that a condition may have; undefined if any will do. Get Fields is read once a project, and only if a name needs it. */
  async #namesFor(project: Project, source: Source, { kind, name }: Condition): Promise<Names | undefined> {
    const { app, service, keys } = this.#deps;
    const documented = kind === "feature" ? DOCUMENTED_FEATURES : (documentedValues(kind, source) ?? []);
    if (documented.includes(name)) return undefined;
    if (source === "billing") {
      const dimension = BILLING_DIMENSIONS.find((one) => one === kind);
      const ask = () => keys.use(project, (key) => fetchBilledFields(service, project.id, key, app.signal));
      return dimension && namesOf(documented, (await this.#billed(project.id, ask))?.[dimension]);
    }
    if (kind !== "feature" && kind !== "model" && kind !== "tags") {
      return documented.length > 0 ? { known: documented, isListed: true } : undefined;
    }
    const fields = await this.#fieldsOf(project);
    if (kind === "feature") return namesOf(documented, fields?.features);
    if (kind === "tags") return namesOf([], fields?.tags?.flatMap(bothForms));
    return namesOf(
      [],
      fields?.models?.flatMap((model) => [model.name, ...(model.id === undefined ? [] : [model.id])]),
    );
  }

  #fieldsOf(project: Project): Promise<ListedFields | undefined> {
    const { app, service, keys } = this.#deps;
    return this.#fields(project.id, () =>
      keys.use(project, (key) => fetchFields(service, project.id, key, app.signal)),
    );
  }

  /** The request with the names that the service filters by: in dialect "2026" a model's id in place of its name. */
  async asSent(request: UsageRequest, dialect: Dialect): Promise<UsageRequest> {
    const { series } = request;
    const { model } = series.filter.dimensions;
    if (dialect !== "2026" || model === undefined) return request;
    const models = (await this.#fieldsOf(series.project))?.models ?? [];
    // A model that is given by its id stays as it is.
    if (models.some(({ id }) => id === model)) return request;
    const ids = [...new Set(models.filter(({ name }) => name === model).flatMap(({ id }) => id ?? []))];
    if (ids.length > 1) {
      const some = ids.slice(0, 5).join(", ");
      throw new AppError("rejected", `${ids.length} models are called "${model}" (${some}): filter by the id of one`);
    }
    const [id] = ids;
    if (id === undefined) return request;
    const filter = { ...series.filter, dimensions: { ...series.filter.dimensions, model: id } };
    return { ...request, series: { ...series, filter } };
  }

  /** Filtered answers are compared with the run's own reading of the total, if that is made first. */
  useTotal({ series, window }: UsageRequest, reading: () => Promise<readonly NormalisedSlice[]>): void {
    if (series.grouping !== "none" || filterKey(series.filter) !== NO_CONDITIONS) return;
    // Whoever reads the total reports its failure.
    this.#totals(totalKey(series, window), async () => dayTotals(await reading())).catch(() => {});
  }

  /**
   * Reads the total that the answer to a filtered request is compared with. Must have finished before that request is made, because the
   * total has to be the older of the two.
   */
  async readTotal({ series, window }: UsageRequest, strictness: Strictness): Promise<void> {
    if (isCompared(series.filter, strictness)) await this.#totalOf({ ...series, window });
  }

  /**
   * Why the numbers of an answer may not be those of the filter; undefined if there is no doubt. `hasRows` says whether an earlier
   * answer with this filter was believed.
   */
  async doubtOf(
    { series, window }: UsageRequest,
    slices: readonly NormalisedSlice[],
    dialect: Dialect,
    strictness: Strictness,
    hasRows: () => Promise<boolean>,
  ): Promise<FilterDoubt | undefined> {
    const { project, source, filter } = series;
    // An answer that names no day can't be compared with the total of a day.
    if (!isCompared(filter, strictness) || slices.some(({ undated }) => undated)) return undefined;
    const scope = { project, source, window };
    const total = await this.#totalOf(scope);
    const shown = effectOf(total, dayTotals(slices));
    const conditions = conditionsOf(filter);
    const unknown = await this.unknownNames(series);
    // Only a filter that the service applies makes the numbers smaller.
    const isProved = shown === "narrower" && conditions.length === 1;
    for (const { condition, isListed, text } of unknown) {
      if (isProved && isListed && strictness === "error") continue;
      this.#deps.app.log.warn({ project: project.name, filter: filter.name, [condition.kind]: condition.name }, text);
    }
    if (isProved || shown === "no usage") return undefined;
    if (shown === "empty") {
      // Stored usage shows on which days a seen value has none. It does not show whether this dialect has a filter for it.
      if (filter.isSeen && !conditions.some(hasOtherDialectName)) return undefined;
      const [never] = (await hasRows()) ? [] : unknown;
      if (never) return emptyDoubt(total.size, source, never, strictness);
      return total.size < SEVERAL_DAYS ? undefined : emptyDoubt(total.size, source);
    }
    const unknownOf = (one: Condition) => unknown.find(({ condition }) => condition.text === one.text);
    // If there are several conditions, one may be ignored although the numbers are smaller.
    const mayBeIgnored = (one: Condition) =>
      shown === "same" || unknownOf(one) !== undefined || hasOtherDialectName(one);
    for (const condition of conditions.filter(mayBeIgnored)) {
      const key = JSON.stringify([totalKey(series, window), dialect, condition.text]);
      if (!(await this.#ignored(key, () => this.#isIgnored(scope, total, condition, dialect)))) continue;
      return ignoredDoubt(condition, unknownOf(condition), strictness);
    }
    return undefined;
  }

  /** Whether the service answers usage to the opposite of the condition, too, which no usage can meet together with it. */
  async #isIgnored(scope: Scope, total: DayTotals, condition: Condition, dialect: Dialect): Promise<boolean> {
    try {
      return isIgnored(condition, effectOf(total, await this.#read(scope, condition.opposite(randomUUID()), dialect)));
    } catch (error) {
      // A service that refuses the value knows the name.
      if (hasStatus(error, [400, 422])) return false;
      throw error;
    }
  }

  #totalOf(scope: Scope): Promise<DayTotals> {
    return this.#totals(totalKey(scope, scope.window), () => this.#read(scope, {}));
  }

  /** Reads ungrouped usage under these conditions. */
  async #read(scope: Scope, conditions: Partial<Filter>, dialect?: Dialect): Promise<DayTotals> {
    const { app, service, keys, dialects } = this.#deps;
    const { project, source, window } = scope;
    const request: UsageRequest = {
      series: { project, source, grouping: "none", filter: { ...ALL_USAGE, ...conditions } },
      window,
    };
    const used = dialect ?? (await dialects.forRequest(request));
    const call = (key: Secret) => fetchBreakdown(service, request, key, app.signal, { dialect: used });
    return dayTotals(normalise(request, await keys.use(project, call), dayOf(new Date())));
  }
}

type Names = { readonly known: readonly string[]; readonly isListed: boolean };

/** `listed` is undefined if the service does not list names of the kind. */
function namesOf(documented: readonly string[], listed: readonly string[] | undefined): Names {
  return { known: [...documented, ...(listed ?? [])], isListed: listed !== undefined };
}

/** The service's own example lists the tag "dev" as "tag=dev". */
function bothForms(tag: string): string[] {
  return tag.startsWith("tag=") ? [tag, tag.slice("tag=".length)] : [tag];
}

function totalKey({ project, source }: Pick<Series, "project" | "source">, window: Window | undefined): string {
  return JSON.stringify([project.id, source, window]);
}

function isCompared(filter: Filter, strictness: Strictness): boolean {
  return strictness !== "off" && filterKey(filter) !== NO_CONDITIONS;
}

/** `unknown` is a name that no answer has proved yet: then the next empty answer proves nothing either. */
function emptyDoubt(days: number, source: Source, unknown?: UnknownName, strictness?: Strictness): FilterDoubt {
  const [none, some] = source === "billing" ? ["no amount", "are amounts"] : ["no usage", "is usage"];
  const empty = `${none} with the filter on any of ${days} days on which there ${some}`;
  if (unknown?.isListed && strictness === "error") {
    return { kind: "filter-ignored", reason: `${empty}: ${unknown.text}`, isConfirmable: false };
  }
  const cause = unknown ? `: ${unknown.text}` : "";
  const reason = `${empty}${cause}; it counts when a run at least an hour later gets the same`;
  return { kind: "filter-empty", reason, isConfirmable: true };
}

function ignoredDoubt(
  { text, kind }: Condition,
  unknown: UnknownName | undefined,
  strictness: Strictness,
): FilterDoubt {
  const opposite = kind === "feature" ? "with the opposite value" : "with a value that nobody has";
  const cause = unknown?.text ?? "it may know the filter by another name (service.dialect)";
  const reason = `the service seems to ignore the ${text}: ${opposite} the numbers are the same; ${cause}`;
  return { kind: "filter-ignored", reason, isConfirmable: strictness === "warn" };
}

// What two answers show of a filter.

/** By day, the sum of each metric over the rows. The sums are doubles and therefore rounded: they are compared, and never stored. */
export type DayTotals = ReadonlyMap<Day, readonly number[]>;

/**
 * - `no usage`: the total has no usage, which proves nothing
 * - `empty`: the total has usage, and the filtered answer has none
 * - `same`: the filtered answer has on no day less than the total, or less of a credit
 * - `narrower`: the filtered answer has usage, and on some day less than the total, or less of a credit
 */
export type Effect = "no usage" | "empty" | "same" | "narrower";

/** Sums of doubles differ in their last digits if the order differs. */
const SUM_TOLERANCE = 1e-9;

/** Days of zeros are left out. A day counts whose amounts cancel each other: an amount below 0 is a credit. */
export function dayTotals(slices: readonly NormalisedSlice[]): DayTotals {
  const totals = new Map<Day, number[]>();
  for (const { day, columns } of slices) {
    const sums = columns.metrics.map((amounts) =>
      amounts.reduce<number>((sum, amount) => sum + Number(amount ?? 0), 0),
    );
    const hasNumbers = columns.metrics.some((amounts) => amounts.some((amount) => Number(amount ?? 0) !== 0));
    if (hasNumbers) totals.set(day, sums);
  }
  return totals;
}

/** `total` must have been read first: numbers grow between two readings, and never fall. */
export function effectOf(total: DayTotals, filtered: DayTotals): Effect {
  if (total.size === 0) return "no usage";
  const days = [...total.keys()];
  if (days.every((day) => !filtered.has(day))) return "empty";
  return days.some((day) => isLess(filtered.get(day), total.get(day) ?? [])) ? "narrower" : "same";
}

function isLess(sums: readonly number[] | undefined, than: readonly number[]): boolean {
  if (sums === undefined) return true;
  return than.some((total, i) => {
    const sum = sums[i] ?? 0;
    const bound = total * (1 - SUM_TOLERANCE);
    return total < 0 ? sum > bound : sum < bound;
  });
}

/** One condition of a filter. */
export type Condition = {
  readonly kind: "feature" | Dimension;
  /** The feature, or the value of the dimension. */
  readonly name: string;
  /** Such as `tag "prod"`. */
  readonly text: string;
  /** If the service knows the condition, no usage meets both the condition and its opposite. `unused` is a value that no usage has. */
  readonly opposite: (unused: string) => Pick<Filter, "features" | "dimensions">;
};

const OPPOSITES: Readonly<Record<string, string>> = { true: "false", false: "true" };

export function conditionsOf({ features, dimensions }: Filter): Condition[] {
  return [
    ...Object.entries(features).map(
      ([name, value]): Condition => ({
        ...{ kind: "feature", name, text: `feature "${name}"` },
        opposite: (unused) => ({ features: { [name]: OPPOSITES[value] ?? unused }, dimensions: {} }),
      }),
    ),
    ...DIMENSIONS.flatMap((kind): Condition[] => {
      const name = dimensions[kind];
      if (name === undefined) return [];
      const text = `${kind === "tags" ? "tag" : kind} "${name}"`;
      return [{ kind, name, text, opposite: (unused) => ({ features: {}, dimensions: { [kind]: unused } }) }];
    }),
  ];
}

/** Whether a service of the other dialect does not understand the condition. */
function hasOtherDialectName({ kind }: Condition): boolean {
  return kind !== "feature" && hasOtherName2026(kind, "filter");
}

/** Whether the numbers of the opposite prove that the service ignores the condition. */
export function isIgnored({ kind }: Pick<Condition, "kind">, opposite: Effect): boolean {
  // No usage has an unused value of a dimension. Usage without a feature is normal, so for a feature only unchanged numbers prove it.
  return opposite === "same" || (kind !== "feature" && opposite === "narrower");
}
