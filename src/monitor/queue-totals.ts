// Adds up the work in the queue, for a person. Pure.

import type { QueueLine } from "./dashboard/operations.ts";

const WORDS = {
  waiting: "waiting",
  retrying: "to be tried again",
  active: "in hand",
  dead: "given up in the last day",
} as const;

/** What was given up is moved to a queue of its own, where it would count a second time. */
const GIVEN_UP_QUEUE = "usage_request_dead";

/** Of each state, "3 waiting", in the order of the way through the queue. */
export function queueTotals(queue: readonly QueueLine[]): readonly { readonly jobs: number; readonly text: string }[] {
  return Object.entries(WORDS).map(([state, words]) => {
    const works = queue.filter((one) => one.state === state && one.queue !== GIVEN_UP_QUEUE);
    const jobs = works.reduce((sum, { jobs }) => sum + jobs, 0);
    return { jobs, text: `${jobs} ${words}` };
  });
}
