// Gives a page that is being made, or was made some seconds ago, to all who ask for it.

import { type Page, textPage } from "../page.ts";
import type { Period } from "./period.ts";

const KEPT_MS = 5_000;
/** Each is some hundred kilobytes. */
const PAGES_MAX = 8;

type Kept = { readonly page: Promise<Page>; madeMs: number | undefined };

/** `nowMs` is in milliseconds and never goes back. */
export function keptPages(
  make: (period: Period) => Promise<Page>,
  nowMs: () => number = () => performance.now(),
): (period: Period) => Promise<Page> {
  const pages = new Map<string, Kept>();

  async function begin(key: string, period: Period): Promise<Page> {
    const kept: Kept = { page: make(period), madeMs: undefined };
    pages.set(key, kept);
    let isGood = false;
    try {
      const page = await kept.page;
      isGood = page.status < 500;
      return page;
    } finally {
      // Only successful pages are kept: after a failure the next request builds the page again.
      if (isGood) kept.madeMs = nowMs();
      else pages.delete(key);
    }
  }

  return async (period) => {
    for (const [key, { madeMs }] of pages) if (madeMs !== undefined && nowMs() - madeMs >= KEPT_MS) pages.delete(key);
    const key = JSON.stringify(period);
    const known = pages.get(key);
    if (known) return known.page;
    return pages.size < PAGES_MAX ? begin(key, period) : busy();
  };
}

function busy(): Page {
  const seconds = String(KEPT_MS / 1000);
  return {
    ...textPage(503, ["too many different pages are asked for at once; this one comes in some seconds"]),
    headers: { "retry-after": seconds, refresh: seconds },
  };
}
