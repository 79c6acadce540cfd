// Checks whether the service applied the filter and the grouping of a request, by comparing the answer with other breakdowns. The service
// validates no parameter: for a misspelt feature, or a parameter name of the other dialect, it answers with plausible but wrong numbers.

import { memoizeAsync } from "../async.ts";
import { didYouMean } from "../config/messages.ts";
import type { StoredDays } from "../db/usage/due-slices.ts";
import { AppError } from "../errors.ts";
import { fetchBreakdown } from "../service/breakdown.ts";
import { fieldsReader, type ListedFields } from "../service/projects.ts";
import { badAnswer } from "../usage/answer-checks.ts";
import { type Day, dayOf, type Window } from "../usage/days.ts";
import {
  DIMENSIONS,
  DIMENSIONS_OF,
  type Dialect,
  type Dimension,
  DOCUMENTED_FEATURES,
  differsIn2026,
  dimension,
} from "../usage/dimensions.ts";
import type { ExportJob, UsageRequest } from "../usage/export-plan.ts";
import { groupingEvidence, type NormalisedSlice, normalise } from "../usage/normalise.ts";
import { ALL_USAGE, dimensionsOf, type Filter, filterKey, NO_CONDITIONS, type Series } from "../usage/series.ts";
import type { FilterDoubt } from "../usage/slice-decision.ts";
import type { ServiceContext } from "./context.ts";

type Deps = Pick<ServiceContext, "app" | "service" | "keyRing" | "dialects">;

/** `name` is the feature, or the value of the dimension; `text` is the condition in words, such as `tag "prod"`. */
type FilterCondition = { readonly kind: "feature" | Dimension; readonly name: string; readonly text: string };

/** A name in a filter that the service does not list, so that only the numbers can show whether the service knows it. */
type UnknownName = {
  readonly condition: FilterCondition;
  /** Whether the service lists other names of this kind. If so, this one is probably a typo, and the same answer in a later run proves nothing. */
  readonly isKindListed: boolean;
  /** What is known about the name, and what may have been meant. */
  readonly text: string;
};

/** What is known of a request besides its answer. `stored` reads what earlier answers of its series brought. */
type Known = { readonly dialect: Dialect; readonly stored: () => Promise<StoredDays> };

/** Checks the answers of one run of a project. Names and totals are requested once. After a failed request the next check asks again. */
export class FilterCheck {
  readonly #deps: Deps;
  readonly #checkFeatures: ExportJob["checkFeatures"];
  readonly #fields = memoizeAsync<ListedFields | undefined>();
  readonly #totals = memoizeAsync<DayTotals>();
  readonly #groups = memoizeAsync<boolean>();

  constructor(deps: Deps, { checkFeatures }: Pick<ExportJob, "checkFeatures">) {
    this.#deps = deps;
    this.#checkFeatures = checkFeatures;
  }

  /** The names in the filter that the service does not list for the project. */
  async unknownNames(series: Series): Promise<UnknownName[]> {
    // A value that was seen in usage came from the service itself.
    if (series.filter.seen) return [];
    const unknown: UnknownName[] = [];
    for (const condition of filterConditions(series.filter)) {
      const names = await this.#namesOfKind(series, condition);
      if (!names || names.known.includes(condition.name)) continue;
      const { known, isKindListed } = names;
      const what = isKindListed ? "does not list" : "does not say whether it knows";
      const text = `the service ${what} the ${condition.text}${didYouMean(condition.name, known)}`;
      unknown.push({ condition, isKindListed, text });
    }
    return unknown;
  }

  /** The known names of a condition's kind. Undefined if the condition's name is documented, or if nothing lists names of its kind. */
  async #namesOfKind(series: Series, { kind, name }: FilterCondition) {
    const { source } = series;
    const documented = kind === "feature" ? DOCUMENTED_FEATURES : (dimension(kind).values?.[source] ?? []);
    if (documented.includes(name)) return undefined;
    if (source === "usage" && kind !== "feature" && kind !== "model" && kind !== "tags") {
      return documented.length > 0 ? { known: documented, isKindListed: true } : undefined;
    }
    const fields = await this.#fieldsOf(series);
    const names: Readonly<Record<string, readonly string[] | undefined>> = fields?.names ?? {};
    return { known: [...documented, ...(names[kind] ?? [])], isKindListed: names[kind] !== undefined };
  }

  #fieldsOf({ project, source }: Series): Promise<ListedFields | undefined> {
    const { app, service, keyRing } = this.#deps;
    const ask = () => keyRing.use(project, (key) => fieldsReader(source)(service, project.id, key, app.signal));
    return this.#fields(JSON.stringify([source, project.id]), ask);
  }

  /** The request as it must be sent: in dialect "2026" the service filters by a model's id, not by its name. */
  async withModelId(request: UsageRequest, dialect: Dialect): Promise<UsageRequest> {
    const { series } = request;
    const { model } = series.filter.dimensions;
    if (dialect !== "2026" || model === undefined) return request;
    const models = (await this.#fieldsOf(series))?.models ?? [];
    // The configuration may name the model by its id already.
    if (models.some(({ model_id: id }) => id === model)) return request;
    const ids = [...new Set(models.filter(({ name }) => name === model).flatMap(({ model_id: id }) => id ?? []))];
    if (ids.length > 1) {
      const some = ids.slice(0, 5).join(", ");
      throw new AppError("rejected", `${ids.length} models are called "${model}" (${some}): filter by the id of one`);
    }
    const [id = model] = ids;
    const filter = { ...series.filter, dimensions: { ...series.filter.dimensions, model: id } };
    return { ...request, series: { ...series, filter } };
  }

  /** Throws if the service ignores `grouping`: if it answers null even for a witness, which is a dimension in which all usage has a value. */
  async requireThatServiceGroups({ series, window }: UsageRequest, answer: unknown): Promise<void> {
    const { project, source, grouping } = series;
    const dimensions = dimensionsOf(grouping);
    if (grouping === "none" || dimensions.some((one) => groupingEvidence(one, answer) !== "no value")) return;
    const witness = DIMENSIONS_OF[source].find(
      (one) => dimension(one).alwaysFilledIn?.includes(source) && !dimensions.includes(one),
    );
    if (witness === undefined) return;
    // Asked once for all requests with a filter, and once for those without: a service may ignore `grouping` only if there is a filter.
    const byWitness = { series: { ...series, grouping: witness }, window };
    const isFiltered = filterKey(series.filter) !== NO_CONDITIONS;
    const hasGroups = async () => groupingEvidence(witness, await this.#fetch(byWitness)) === "value";
    if (await this.#groups(JSON.stringify([source, project.id, isFiltered]), hasGroups)) return;
    throw badAnswer(
      `no row has a value of "${grouping}", nor has any row of a request by ${witness}: the service seems to ignore "grouping" and to answer the total; export "none" alone, or ask the vendor`,
    );
  }

  /** If the request reads the total, filtered answers are compared with this reading, and the total is not requested a second time. */
  offerTotal({ series, window }: UsageRequest, reading: () => Promise<readonly NormalisedSlice[]>): void {
    if (series.grouping !== "none" || filterKey(series.filter) !== NO_CONDITIONS) return;
    // The caller handles a failure of its reading.
    this.#totals(totalKey({ series, window }), async () => dayTotals(await reading())).catch(() => {});
  }

  /** Reads the total that the answer to a filtered request is compared with. Must end before the request is sent: see `compareTotals`. */
  async prefetchTotal({ series, window }: UsageRequest): Promise<void> {
    if (this.#isCompared(series.filter)) await this.#totalOf(series, window);
  }

  /** Compares the answer to a filtered request with the total. */
  async effectOf({ series, window }: UsageRequest, slices: readonly NormalisedSlice[]): Promise<Effect> {
    return compareTotals(await this.#totalOf(series, window), dayTotals(slices));
  }

  /** Why the numbers of an answer may not be those of the filter; undefined if there is no doubt. */
  async doubtOf(request: UsageRequest, slices: readonly NormalisedSlice[], known: Known) {
    const { project, filter } = request.series;
    // An answer that names no day can't be compared with the total of a day.
    if (!this.#isCompared(filter) || slices.some(({ undated }) => undated)) return undefined;
    const effect = await this.effectOf(request, slices);
    const unknown = await this.unknownNames(request.series);
    // Smaller numbers show that the service applied the filter, but of several conditions it may have ignored some.
    const isProved = effect === "narrower" && filterConditions(filter).length === 1;
    for (const { condition, isKindListed, text } of unknown) {
      // With "error", a name of a listed kind is not logged if the numbers prove that the service knows it. With "warn", every name is.
      if (isProved && isKindListed && this.#checkFeatures === "error") continue;
      this.#deps.app.log.warn({ project: project.name, filter: filter.name, [condition.kind]: condition.name }, text);
    }
    if (isProved || effect === "no usage") return undefined;
    if (effect === "empty") return this.#doubtOfEmpty(request, unknown[0], known);
    const doubt = await this.#doubtOfNumbers(request, effect, unknown[0], known);
    // Rows are stored only if an earlier answer with this filter was confirmed or raised no doubt.
    return doubt?.isConfirmable && (await known.stored()).hasRows ? undefined : doubt;
  }

  /** The doubt about an answer without usage on days that have some. */
  async #doubtOfEmpty(request: UsageRequest, unknown: UnknownName | undefined, { stored }: Known) {
    const { series, window } = request;
    const { source, filter } = series;
    // The value of a fan-out may have no usage on these days. But if the filter depends on the dialect, the service may not know it.
    if (filter.seen && !filterConditions(filter).some(isDialectDependent)) return undefined;
    const { hasRows, isNewestEmpty } = await stored();
    const unprovedName = hasRows ? undefined : unknown;
    const days = (await this.#totalOf(series, window)).size;
    // It is plausible that no usage of a single day meets a filter by known names.
    if (!unprovedName && days === 1) return undefined;
    const isConfirmable = this.#checkFeatures === "warn" || !unprovedName?.isKindListed;
    // An empty answer was believed before, so another one raises no doubt.
    if (isNewestEmpty && isConfirmable) return undefined;
    const what = source === "billing" ? "amount" : "usage";
    const empty = `no ${what} meets the filter, though ${days} of the days have some`;
    return filterDoubt(isConfirmable ? "filter-empty" : "filter-ignored", empty, isConfirmable, unprovedName);
  }

  /** The doubt about an answer that may include usage that does not meet the filter. */
  async #doubtOfNumbers(request: UsageRequest, effect: Effect, unknown: UnknownName | undefined, { dialect }: Known) {
    const { source, filter } = request.series;
    const dependent = filterConditions(filter).find(isDialectDependent);
    const suspected = unknown?.condition ?? (effect === "same" ? dependent : undefined);
    if (!suspected || (!unknown && (await this.#deps.dialects.isProved(request, dialect)))) return undefined;
    const ignored = `the service seems to ignore the ${suspected.text}${unknown ? "" : SAME_NUMBERS}`;
    // For billing no probe can prove a dialect, so a later run with the same numbers must do.
    const isConfirmable = this.#checkFeatures === "warn" || (unknown ? !unknown.isKindListed : source === "billing");
    return filterDoubt("filter-ignored", ignored, isConfirmable, unknown);
  }

  #isCompared(filter: Filter): boolean {
    return this.#checkFeatures !== "off" && filterKey(filter) !== NO_CONDITIONS;
  }

  #totalOf({ project, source }: Series, window: Window | undefined): Promise<DayTotals> {
    const request: UsageRequest = { series: { project, source, grouping: "none", filter: ALL_USAGE }, window };
    const ask = async () => dayTotals(normalise(request, await this.#fetch(request), dayOf(new Date())).slices);
    return this.#totals(totalKey(request), ask);
  }

  async #fetch(request: UsageRequest): Promise<unknown> {
    const { app, service, keyRing, dialects } = this.#deps;
    const dialect = await dialects.forRequest(request);
    const sent = await this.withModelId(request, dialect);
    return keyRing.use(sent.series.project, (key) => fetchBreakdown(service, sent, key, app.signal, { dialect }));
  }
}

const SAME_NUMBERS =
  ': without the filter the numbers are the same; if the service has another name for the filter, set service.dialect to "auto", which finds it; if all usage meets the filter, set "checkFeatures" to "warn"';

function totalKey({ series: { project, source }, window }: UsageRequest): string {
  return JSON.stringify([project.id, source, window]);
}

function filterDoubt(kind: FilterDoubt["kind"], what: string, isConfirmable: boolean, unknown?: UnknownName) {
  const cause = unknown ? `: ${unknown.text}` : "";
  const hint = isConfirmable ? "; the answer is stored once a run at least an hour later gets the same" : "";
  return { kind, reason: what + cause + hint, isConfirmable };
}

/** The sums of each metric over the rows of a day. They are doubles, as they are only compared and never stored. */
type DayTotals = ReadonlyMap<Day, readonly number[]>;

/**
 * - `no usage`: the total has no usage, which proves nothing
 * - `empty`: the total has usage, and the filtered answer has none
 * - `narrower`: the filtered answer has usage, and on some day less of a metric than the total (or a credit nearer to 0)
 * - `same`: the filtered answer has usage, and never less than the total
 */
export type Effect = "no usage" | "empty" | "same" | "narrower";

/** Doubles that are added in another order may have a sum with other last digits. */
const SUM_TOLERANCE = 1e-9;

/** Leaves out days whose amounts are all 0, but not days whose credits cancel the charges. */
export function dayTotals(slices: readonly NormalisedSlice[]): DayTotals {
  const totals = new Map<Day, number[]>();
  for (const { day, columns } of slices) {
    const numbers = columns.metrics.map((amounts) => amounts.map((amount) => Number(amount ?? 0)));
    const sums = numbers.map((ofMetric) => ofMetric.reduce((sum, number) => sum + number, 0));
    if (numbers.some((ofMetric) => ofMetric.some((number) => number !== 0))) totals.set(day, sums);
  }
  return totals;
}

/** `total` must be read first. Numbers only grow, so a total that is read later could exceed an answer whose filter was ignored. */
export function compareTotals(total: DayTotals, filtered: DayTotals): Effect {
  if (total.size === 0) return "no usage";
  if (total.keys().every((day) => !filtered.has(day))) return "empty";
  return total.entries().some(([day, sums]) => isLess(filtered.get(day), sums)) ? "narrower" : "same";
}

function isLess(sums: readonly number[] | undefined, than: readonly number[]): boolean {
  if (sums === undefined) return true;
  return than.some((total, i) => {
    const sum = sums[i] ?? 0;
    const bound = total * (1 - SUM_TOLERANCE);
    return total < 0 ? sum > bound : sum < bound;
  });
}

function filterConditions({ features, dimensions }: Filter): FilterCondition[] {
  return [
    ...Object.keys(features).map((name): FilterCondition => ({ kind: "feature", name, text: `feature "${name}"` })),
    ...DIMENSIONS.flatMap((kind): FilterCondition[] => {
      const name = dimensions[kind];
      return name === undefined ? [] : [{ kind, name, text: `${kind === "tags" ? "tag" : kind} "${name}"` }];
    }),
  ];
}

/** Whether the two dialects filter by the condition's dimension under different names or with different values, or only one of them does. */
function isDialectDependent({ kind }: FilterCondition): boolean {
  return kind !== "feature" && differsIn2026(kind, "filter");
}
