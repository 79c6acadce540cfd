// Judges whether everybody can use a page: contrast, names, roles, order, as far as axe-core can see.

import axe from "axe-core";
import type { Page } from "playwright-core";

/** One line for each violation of axe-core's rules of WCAG and of good practice. */
export async function axeFindings(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  const { violations } = (await page.evaluate("axe.run()")) as Pick<axe.AxeResults, "violations">;
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} (${help}) at ${target.join(" ")}: ${failureSummary}`),
  );
}
