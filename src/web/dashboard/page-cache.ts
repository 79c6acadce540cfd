// Caches pages for some seconds. Requests for a page that is being made wait for it and share it.

import { type Page, textPage } from "../page.ts";

export const CACHE_MS = 5_000;
/** Each page has some hundred kilobytes. */
const CACHED_PAGES_MAX = 16;

/** `madeMs` is undefined while the page is being made. */
type CachedPage = { readonly page: Promise<Page>; madeMs: number | undefined };

/** `what` says which page, as JSON. `nowMs` is in milliseconds and never goes back. */
export function pageCache<What>(
  make: (what: What) => Promise<Page>,
  nowMs: () => number = () => performance.now(),
): (what: What) => Promise<Page> {
  const cached = new Map<string, CachedPage>();

  async function makePage(key: string, what: What): Promise<Page> {
    const entry: CachedPage = { page: make(what), madeMs: undefined };
    cached.set(key, entry);
    let isGood = false;
    try {
      const page = await entry.page;
      isGood = page.status < 500;
      return page;
    } finally {
      // Only successful pages are kept: after a failure the next request builds the page again.
      if (isGood) entry.madeMs = nowMs();
      else cached.delete(key);
    }
  }

  return async (what) => {
    for (const [key, { madeMs }] of cached)
      if (madeMs !== undefined && nowMs() - madeMs >= CACHE_MS) cached.delete(key);
    const key = JSON.stringify(what);
    const known = cached.get(key);
    if (known) return known.page;
    return cached.size < CACHED_PAGES_MAX ? makePage(key, what) : cacheFullPage();
  };
}

function cacheFullPage(): Page {
  const seconds = String(CACHE_MS / 1000);
  return {
    ...textPage(503, ["too many different pages are requested at once; try again in some seconds"]),
    headers: { "retry-after": seconds, refresh: seconds },
  };
}
