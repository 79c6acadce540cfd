// Reads a usage breakdown: GET /v1/projects/{id}/usage/breakdown. What the answer must look like is for who stores it.

import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { UsageRequest } from "../usage/plan.ts";
import { DIMENSIONS, type Dimension, type Grouping, type Series } from "../usage/series.ts";
import type { Dialect, Service } from "./service.ts";

/** Where today's names differ from those of the interface: of the one as a grouping, of the other as a filter. */
const NAMES_OF_2026: Readonly<Partial<Record<Dimension, { grouping?: string; filter?: string }>>> = {
  model: { grouping: "models" },
  tags: { filter: "tag" },
};

/** Parameters with a meaning of their own. Any other name is a feature to the service, and none of these may be one. */
const RESERVED: ReadonlySet<string> = new Set(["start", "end", "grouping", "models", "tag", ...DIMENSIONS]);

/** The name a grouping is asked by. */
export function groupingName(grouping: Grouping, dialect: Dialect): string {
  const names = dialect === "2026" ? NAMES_OF_2026 : {};
  return (grouping === "none" ? undefined : names[grouping]?.grouping) ?? grouping;
}

/** Whether the two dialects write this request differently. */
export function dependsOnDialect({ grouping, filter: { dimensions } }: Series): boolean {
  const { model, tags, feature_set } = dimensions;
  return grouping === "model" || [model, tags, feature_set].some((value) => value !== undefined);
}

export function breakdownQuery({ series, window }: UsageRequest, dialect: Dialect): URLSearchParams {
  const { grouping, filter } = series;
  const names = dialect === "2026" ? NAMES_OF_2026 : {};
  const query = new URLSearchParams();
  if (window !== undefined) {
    query.set("start", window.start);
    query.set("end", window.end);
  }
  if (grouping !== "none") query.set("grouping", groupingName(grouping, dialect));
  for (const [feature, value] of Object.entries(filter.features)) {
    if (RESERVED.has(feature)) {
      throw new AppError(
        "config",
        `the filter "${filter.name}" has "${feature}" as a feature, which the service does not take for one`,
      );
    }
    query.set(feature, value);
  }
  if (dialect === "2026" && filter.dimensions.feature_set !== undefined) {
    const message = `the filter "${filter.name}" narrows by feature_set, which this service only groups by (its dialect is "2026"): remove it`;
    throw new AppError("rejected", message);
  }
  for (const dimension of DIMENSIONS) {
    const value = filter.dimensions[dimension];
    if (value !== undefined) query.set(names[dimension]?.filter ?? dimension, value);
  }
  return query;
}

export type Asking = {
  /** Left out: the configured dialect. */
  readonly dialect?: Dialect;
  /** Called and awaited before each attempt. */
  readonly onTurn?: () => Promise<void>;
};

/** Returns the parsed answer; its shape is unchecked. */
export async function fetchBreakdown(
  service: Service,
  request: UsageRequest,
  key: Secret,
  signal: AbortSignal,
  { dialect, onTurn }: Asking = {},
): Promise<unknown> {
  const answer = await service.call(
    {
      method: "GET",
      path: ["v1", "projects", request.series.project.id, "usage", "breakdown"],
      query: breakdownQuery(request, dialect ?? dialectOf(service, request)),
      retry: true,
      scopes: ["project:read", "usage:read"],
      ...(onTurn && { onTurn }),
    },
    key,
    signal,
  );
  return answer.value;
}

function dialectOf({ dialect }: Service, { series }: UsageRequest): Dialect {
  if (dialect !== "auto") return dialect;
  if (dependsOnDialect(series))
    throw new Error("the dialect of this request is not known yet: expected a probe before it");
  return "2026";
}
