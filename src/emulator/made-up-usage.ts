// Usage like that of a real project, the same for the same seed, project and day whenever and in whatever order it is
// asked for. What has not arrived yet is left out. Pure.

import { isWeekend } from "./days.ts";
import { randomFrom } from "./random.ts";
import { type Amounts, shareOf, type UsageSource } from "./usage-record.ts";
import { type Workload, workloadsOf } from "./workloads.ts";

const WEEKEND_SHARE = 0.35;

/** A customer does not call every day: groups come and go. */
const IDLE_CHANCE = 0.1;

export function madeUpUsage(seed: number): UsageSource {
  return (projectId, day, ageDays) =>
    workloadsOf(seed, projectId).flatMap((workload, n) => {
      const random = randomFrom("usage", seed, projectId, day, n);
      if (random() < IDLE_CHANCE) return [];
      const share = shareArrived(ageDays, random());
      const amounts = shareOf(amountsOf(workload, day, random), share);
      if (amounts.requests === 0) return [];
      const { dailyRequests: _, tags, ...dimensions } = workload;
      // The order of tags means nothing, and changes.
      return [{ ...dimensions, tags: tags && random() < 0.5 ? tags.toReversed() : tags, ...amounts }];
    });
}

/** `lateness` in [0, 1): some numbers of a day grow by more than others until, three days on, all of them are final. */
function shareArrived(ageDays: number, lateness: number): number {
  if (ageDays >= 3) return 1;
  if (ageDays >= 2) return 1 - 0.015 * lateness;
  const afterMidnight = 1 - 0.06 * lateness;
  return ageDays >= 1 ? afterMidnight : ageDays * afterMidnight;
}

function amountsOf({ endpoint, dailyRequests }: Workload, day: string, random: () => number): Amounts {
  const shape = isWeekend(day) ? WEEKEND_SHARE : 1;
  const requests = Math.max(1, Math.round(dailyRequests * shape * (0.75 + random() / 2)));
  const size = 0.5 + random();
  const audioHours = endpoint === "listen" || endpoint === "agent" ? millionths((requests * size * 240) / 3600) : 0;
  const isLanguageModel = endpoint === "agent" || endpoint === "read";
  return {
    hours: audioHours,
    // Channels of their own make the audio that was processed longer than the audio that came.
    total_hours: millionths(audioHours * (1 + random() / 20)),
    agent_hours: endpoint === "agent" ? audioHours : 0,
    tokens_in: isLanguageModel ? Math.round(requests * size * 900) : 0,
    tokens_out: isLanguageModel ? Math.round(requests * size * 210) : 0,
    tts_characters: endpoint === "speak" || endpoint === "agent" ? Math.round(requests * size * 400) : 0,
    requests,
  };
}

function millionths(hours: number): number {
  return Math.round(hours * 1e6) / 1e6;
}
