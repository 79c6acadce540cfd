// Checks that the service groups at all if no row of an answer has a value of the requested dimension. A service that ignores
// `grouping` answers with the total and null in every dimension, which looks like usage without tags.

import { AppError } from "../errors.ts";
import { hasValue, isAllNull } from "../usage/normalise.ts";
import type { UsageRequest } from "../usage/plan.ts";
import type { Dimension } from "../usage/series.ts";

export type GroupingCheck = {
  /**
   * Throws `bad_answer` if no row has a value and an answer by other dimensions, requested by `ask`, has none either. Also throws
   * what `ask` throws.
   */
  readonly require: (request: UsageRequest, answer: unknown, ask: Ask) => Promise<void>;
};

type Ask = (other: UsageRequest) => Promise<unknown>;

/** Every request to the service has a value of these dimensions. */
const ALWAYS_THERE: readonly Dimension[] = ["endpoint", "method", "model"];
const ASKED_BESIDE = 2;

/**
 * How long the result for one request holds for all requests of the project: long if the service groups, short if it does not,
 * because it may be repaired.
 */
const GROUPS_MS = 60 * 60_000;
const IGNORES_MS = 60_000;

type Known = { readonly groups: boolean; readonly untilMs: number };

export function openGroupingCheck(now = () => performance.now()): GroupingCheck {
  const known = new Map<string, Known>();
  const underWay = new Map<string, Promise<boolean>>();

  /** A failed check is not remembered. */
  async function findOut(request: UsageRequest, ask: Ask): Promise<boolean> {
    const { series } = request;
    let groups = false;
    for (const grouping of askedBeside(request)) {
      const other = { ...request, series: { ...series, grouping } };
      groups ||= hasValue(other, await ask(other));
    }
    known.set(series.project.id, { groups, untilMs: now() + (groups ? GROUPS_MS : IGNORES_MS) });
    return groups;
  }

  async function groups(request: UsageRequest, ask: Ask): Promise<boolean> {
    const { id } = request.series.project;
    const before = known.get(id);
    if (before && now() < before.untilMs) return before.groups;
    const asking = underWay.get(id) ?? findOut(request, ask).finally(() => underWay.delete(id));
    underWay.set(id, asking);
    return asking;
  }

  return {
    async require(request, answer, ask) {
      if (!isAllNull(request, answer) || (await groups(request, ask))) return;
      const { grouping } = request.series;
      const others = askedBeside(request).join(" or ");
      throw new AppError(
        "bad_answer",
        `no row has a value of "${grouping}", and none has one by ${others} either: the service seems to answer the total whatever "grouping" asks for; export "none" alone, or ask the vendor`,
      );
    },
  };
}

function askedBeside({ series: { grouping } }: UsageRequest): Dimension[] {
  return ALWAYS_THERE.filter((dimension) => dimension !== grouping).slice(0, ASKED_BESIDE);
}
