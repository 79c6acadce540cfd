// Looks whether a replaced key is still used, by the breakdown by accessor.

import { fetchBreakdown } from "../api/breakdown.ts";
import { listKeys } from "../api/keys.ts";
import type { Service } from "../api/service.ts";
import { AppError, errorText } from "../errors.ts";
import type { LedgerKey } from "../keys/ledger.ts";
import type { RotationJob } from "../keys/policy.ts";
import type { SeenInUse } from "../keys/rotation-deps.ts";
import { addDays, type Day } from "../usage/day.ts";
import { type NormalisedSlice, normalise } from "../usage/normalise.ts";
import { stretchesOf, type UsageRequest } from "../usage/plan.ts";
import type { KeyRing } from "./keys-in-use.ts";

export type Look = {
  readonly service: Service;
  readonly keys: KeyRing;
  readonly job: RotationJob;
  readonly key: LedgerKey;
  readonly today: Day;
  readonly signal: AbortSignal;
};

/** How old the newest usage by any key may be. If the service's answers lag further behind, they prove nothing about the last days. */
const LAG_DAYS_MAX = 3;

/** Looks at every day of grace, today included. The first day may include usage from before the key was replaced. */
export async function seenInUse({ service, keys, job, key, today, signal }: Look): Promise<SeenInUse> {
  const { project } = job;
  const start = addDays(today, -Math.max(job.graceDays, 1));
  const series = { project, grouping: "accessor", filter: { name: "all", features: {}, dimensions: {} } } as const;
  try {
    const listed = await keys.useToRotate(job, (caller) => listKeys(service, project.id, caller, signal));
    const used: Usage[] = [];
    for (const window of stretchesOf({ start, end: today })) {
      const request: UsageRequest = { series, window };
      const answer = await keys.use(project, (caller) => fetchBreakdown(service, request, caller, signal));
      used.push(...usageIn(normalise(request, answer, today)));
    }
    return verdict(key, used, new Set(listed?.map(({ apiKeyId }) => apiKeyId)), start, today);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof AppError)) throw error;
    return { seen: "unknown", text: `the breakdown by accessor could not be read: ${errorText(error)}` };
  }
}

type Usage = { readonly day: Day; readonly accessor: string };

function usageIn(slices: readonly NormalisedSlice[]): Usage[] {
  return slices.flatMap(({ day, rows }) =>
    rows.flatMap(({ group, metrics }) => {
      const isUsed = metrics.values.some((value) => value !== null && value !== "0");
      return isUsed && group.display !== null ? [{ day, accessor: group.display }] : [];
    }),
  );
}

/** Pure. `listed` are the ids of the keys that the service lists. */
export function verdict(
  { apiKeyId }: Pick<LedgerKey, "apiKeyId">,
  used: readonly Usage[],
  listed: ReadonlySet<string>,
  start: Day,
  today: Day,
): SeenInUse {
  const newest = (usage: readonly Usage[]) =>
    usage
      .map(({ day }) => day)
      .sort()
      .at(-1);
  const own = newest(used.filter(({ accessor }) => accessor === apiKeyId));
  if (own !== undefined) return { seen: "yes", text: `the breakdown by accessor shows usage on ${own}` };
  // The absence of this key means something only if accessors are the ids of keys.
  const told = newest(used.filter(({ accessor }) => listed.has(accessor)));
  if (told === undefined) {
    return { seen: "unknown", text: "the breakdown by accessor does not tell which key is which" };
  }
  if (told < addDays(today, -LAG_DAYS_MAX)) {
    return { seen: "unknown", text: `the breakdown by accessor shows nothing newer than ${told}, of any key` };
  }
  return { seen: "no", text: `the breakdown by accessor shows no usage since ${start}` };
}
