// When a replaced key was last used, as the breakdown by accessor shows it.

import { databaseNow } from "../db/connection/database.ts";
import { AppError, errorText } from "../errors.ts";
import type { LedgerKey } from "../keys/ledger.ts";
import type { RotationJob } from "../keys/policy.ts";
import type { LastUse } from "../keys/rotation-deps.ts";
import { listKeys } from "../service/keys.ts";
import { fetchBreakdown } from "../service/usage.ts";
import { addDays, type Day, dayOf } from "../usage/days.ts";
import { normalise } from "../usage/normalise.ts";
import { splitWindow, type UsageRequest } from "../usage/plan.ts";
import type { NormalisedSlice } from "../usage/rows.ts";
import { ALL_USAGE } from "../usage/series.ts";
import type { RotationContext } from "./export-context.ts";

/** How old the newest usage by any key may be. If the service's answers lag further behind, they prove nothing about the last days. */
const USAGE_LAG_DAYS_MAX = 3;

/** Reads every day of the grace period and today. The first day may include usage from before the key was replaced. */
export async function lastUse(
  { app, db, service, keys }: RotationContext,
  job: RotationJob,
  key: LedgerKey,
): Promise<LastUse> {
  const { project } = job;
  const { signal } = app;
  const today = dayOf(await databaseNow(db));
  const start = addDays(today, -Math.max(job.graceDays, 1));
  const series = { project, source: "usage", grouping: "accessor", filter: ALL_USAGE } as const;
  try {
    const listed = await keys.useToRotate(job, (caller) => listKeys(service, project.id, caller, signal));
    const used: KeyUsage[] = [];
    for (const window of splitWindow({ start, end: today })) {
      const request: UsageRequest = { series, window };
      const answer = await keys.use(project, (caller) => fetchBreakdown(service, request, caller, signal));
      used.push(...keyUsageIn(normalise(request, answer, today)));
    }
    return lastUseVerdict(key, used, new Set(listed?.map(({ apiKeyId }) => apiKeyId)), start, today);
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof AppError)) throw error;
    return { seen: "unknown", text: `the breakdown by accessor could not be read: ${errorText(error)}` };
  }
}

type KeyUsage = { readonly day: Day; readonly accessor: string };

function keyUsageIn(slices: readonly NormalisedSlice[]): KeyUsage[] {
  return slices.flatMap(({ day, columns: { groups, metrics } }) =>
    groups.flatMap(({ display }, row) => {
      const isUsed = metrics.some((amounts) => String(amounts[row] ?? 0) !== "0");
      return isUsed && display !== null ? [{ day, accessor: display }] : [];
    }),
  );
}

/** Pure. `listed` are the ids of the keys that the service lists. */
export function lastUseVerdict(
  { apiKeyId }: Pick<LedgerKey, "apiKeyId">,
  used: readonly KeyUsage[],
  listed: ReadonlySet<string>,
  start: Day,
  today: Day,
): LastUse {
  const newest = (usage: readonly KeyUsage[]) =>
    usage
      .map(({ day }) => day)
      .sort()
      .at(-1);
  const own = newest(used.filter(({ accessor }) => accessor === apiKeyId));
  if (own !== undefined) return { seen: "yes", text: `the breakdown by accessor shows usage on ${own}` };
  // The absence of this key means something only if accessors are the ids of keys.
  const newestOfAny = newest(used.filter(({ accessor }) => listed.has(accessor)));
  if (newestOfAny === undefined) {
    return { seen: "unknown", text: "the breakdown by accessor does not tell which key is which" };
  }
  if (newestOfAny < addDays(today, -USAGE_LAG_DAYS_MAX)) {
    return { seen: "unknown", text: `the breakdown by accessor shows nothing newer than ${newestOfAny}, of any key` };
  }
  return { seen: "no", text: `the breakdown by accessor shows no usage since ${start}` };
}
