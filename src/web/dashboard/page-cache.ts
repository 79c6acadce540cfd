// Caches pages for some seconds. Requests for a page that is being made wait for it and share it, so many visitors of few pages cost as much
// as one visitor of each.

import { setTimeout } from "node:timers/promises";
import type { Page } from "../page.ts";

export const CACHE_MS = 5_000;
/** A page is new for four times as long as it took to be made, within limits: the more there is to do, the less often a page is made. */
const NEW_PER_MADE_MS = 4;
/** An older page is never shown. */
const AGE_MS_MAX = 30_000;
/** Visitors of a page that is not new wait so long for the next one. After that they get the old one, which says of when it is. */
const WAIT_MS = 1_000;
/** The pages in the cache have at most this many characters together: most have a hundred thousand to three hundred thousand. */
const CHARS_MAX = 6_000_000;

type CachedPage = { readonly page: Page; readonly madeMs: number; readonly isNewUntilMs: number };

type Limits = { readonly waitMs: number; readonly charsMax: number };

/** `what` says which page, as JSON. `nowMs` is in milliseconds and never goes back. */
export function pageCache<What>(
  make: (what: What) => Promise<Page>,
  nowMs: () => number = () => performance.now(),
  { waitMs, charsMax }: Limits = { waitMs: WAIT_MS, charsMax: CHARS_MAX },
): (what: What) => Promise<Page> {
  /** The one that was made first comes first. */
  const cached = new Map<string, CachedPage>();
  const inProgress = new Map<string, Promise<Page>>();

  async function makePage(key: string, what: What): Promise<Page> {
    const beganMs = nowMs();
    let page: Page | undefined;
    try {
      page = await make(what);
      return page;
    } finally {
      inProgress.delete(key);
      // After a failure nothing is shown as if it were still so, and the next request makes the page again.
      cached.delete(key);
      if (page !== undefined && page.status < 500) keep(key, page, nowMs() - beganMs);
    }
  }

  function keep(key: string, page: Page, tookMs: number): void {
    const madeMs = nowMs();
    const newMs = Math.min(Math.max(NEW_PER_MADE_MS * tookMs, CACHE_MS), AGE_MS_MAX);
    cached.set(key, { page, madeMs, isNewUntilMs: madeMs + newMs });
    let chars = [...cached.values()].reduce((sum, one) => sum + one.page.body.length, 0);
    for (const [oldest, one] of cached) {
      if (chars <= charsMax) break;
      cached.delete(oldest);
      chars -= one.page.body.length;
    }
  }

  return async (what) => {
    for (const [key, { madeMs }] of cached) if (nowMs() - madeMs >= AGE_MS_MAX) cached.delete(key);
    const key = JSON.stringify(what);
    const known = cached.get(key);
    if (known && nowMs() < known.isNewUntilMs) return known.page;
    let next = inProgress.get(key);
    if (!next) {
      next = makePage(key, what);
      inProgress.set(key, next);
    }
    return known ? Promise.race([next, setTimeout(waitMs, known.page, { ref: false })]) : next;
  };
}
