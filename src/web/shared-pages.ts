// Visitors of a URL share what is made for one of them, so many visitors of few pages cost as much as one of each. On a busy machine, visitors
// of 20 URLs must not wait for each page to be made: without the last page in its place, an eighth of 1,250 waited for 8 s and got a 503.

import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "./page.ts";

/** A page is new for four times as long as it took to be made, but at least for `newMs` and at most for six times as long. */
const NEW_PER_MADE_MS = 4;
const NEW_MAX = 6;
/** An older page is never shown. */
const AGE_MS_MAX = 30_000;
/** Most pages have a hundred to three hundred kilobytes. */
const PAGES_MAX = 40;

export type SharingLimits = {
  readonly newMs: number;
  /** Visitors of a page that is not new wait so long for the next one. After that they get the old one, which says of when it is. */
  readonly waitMs: number;
};

type SharedPage = { readonly page: Page; readonly isNewUntilMs: number; readonly expiresMs: number };

/** `nowMs` is in milliseconds and never goes back. */
export function sharePages(
  { newMs, waitMs }: SharingLimits,
  nowMs: () => number = () => performance.now(),
): (url: string, make: () => Promise<Page>) => Promise<Page> {
  /** The page that was made first comes first. */
  const made = new Map<string, SharedPage>();
  const inProgress = new Map<string, Promise<Page>>();

  async function makePage(url: string, make: () => Promise<Page>): Promise<Page> {
    const beganMs = nowMs();
    let page: Page | undefined;
    try {
      page = await make();
      return page;
    } finally {
      const now = nowMs();
      const isNewUntilMs = now + Math.min(Math.max(NEW_PER_MADE_MS * (now - beganMs), newMs), NEW_MAX * newMs);
      inProgress.delete(url);
      // After a failure nothing is shown as if it were still so.
      made.delete(url);
      if (page?.status === 200) made.set(url, { page, isNewUntilMs, expiresMs: now + AGE_MS_MAX });
    }
  }

  return async (url, make) => {
    for (const [other, { expiresMs }] of made) if (nowMs() >= expiresMs || made.size > PAGES_MAX) made.delete(other);
    const known = made.get(url);
    if (known && nowMs() < known.isNewUntilMs) return known.page;
    const next = inProgress.get(url) ?? makePage(url, make);
    inProgress.set(url, next);
    return known ? Promise.race([next, sleep(waitMs, known.page, { ref: false })]) : next;
  };
}
