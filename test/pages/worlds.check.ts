// How the pages begin in each world of worlds.ts.

import type { Page } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { databaseNow, openPostgres } from "../../src/db/connection/database.ts";
import { openMonitoring } from "../../src/worker/monitoring.ts";
import { copyDatabase } from "../support/database.ts";
import { silentApp } from "../support/silent-app.ts";
import { axeFindings } from "./axe.ts";
import { openBrowser, openPage, savePicture } from "./browser.ts";
import { storeWorld, WORLDS } from "./worlds.ts";

const browser = await openBrowser();

const BEGINNINGS: Readonly<Record<keyof typeof WORLDS, RegExp>> = {
  demo: /^[A-Z][a-z]+: \$[\d,]+ so far, heading for \$[\d,]+/,
  cost: /^[A-Z][a-z]+: \$[\d,]+ so far, heading for \$[\d,]+ \(\$[\d,]+ to \$[\d,]+\), .* budget/,
  large: /^[A-Z][a-z]+: an estimated \$[\d,]+ so far/,
  outage: /^No data after [A-Z][a-z]+ \d+: the service is failing/,
  unreached: /^There is no data/,
  empty: /^There are no numbers yet/,
};

test.each(Object.entries(WORLDS))(
  "in the world %s, the overview begins with what matters most",
  async (name, world) => {
    await using copy = await copyDatabase();
    const db = openPostgres(copy.url);
    onTestFinished(() => db.destroy());
    const config = await storeWorld(db, world);
    // On the first two days of a month the sentence about it is shorter.
    const isEarly = (await databaseNow(db)).getUTCDate() < 3;
    const current = { config: { ...config, monitor: { host: "127.0.0.1", port: 0 } }, access: undefined };
    await using monitoring = await openMonitoring(silentApp(), () => current, {
      ...{ db, liveness: { isLive: () => true, reasons: () => [] } },
    });
    for (const path of ["", "usage", "data-health"]) {
      const viewport = { width: 1440, height: 900 };
      const { page, consoleMessages } = await openPage(browser, `${monitoring.url}/${path}`, { viewport });
      await page.waitForLoadState("networkidle");
      expect(await axeFindings(page)).toEqual([]);
      expect(consoleMessages).toEqual([]);
      // With all data in, the overview is one screen.
      if (path === "" && name !== "outage")
        expect(await page.evaluate("document.documentElement.scrollHeight")).toBe(viewport.height);
      await takePictures(page, `${name}-${path || "overview"}`);
      if (path === "usage" && name === "cost")
        expect(await page.locator("#usage-title").innerText()).toBe("Billed cost by project");
      if (path !== "" || isEarly) continue;
      const said = await page.locator(".sentence, .notice.none").first().textContent();
      expect(said).toMatch(BEGINNINGS[name] ?? /./);
    }
  },
);

/** What a person sees on a desktop, a tablet and a phone, in light and dark. */
async function takePictures(page: Page, name: string): Promise<void> {
  if (process.env.PICTURES === undefined) return;
  for (const width of [1440, 1024, 390])
    for (const colorScheme of ["light", "dark"] as const) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await page.waitForTimeout(150);
      await savePicture(page, `${name}-${width}-${colorScheme}`);
    }
}
