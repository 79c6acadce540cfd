// Searches a case for secrets, and reports how many artefacts were searched to the figures.

import { type Places, type Search, searchPlaces } from "../support/leaks.ts";
import { reportShare } from "./figures.ts";

export async function leakViolations(secrets: readonly string[], places: Places): Promise<readonly string[]> {
  return counted(await searchPlaces(secrets, places));
}

export function counted({ leaks, artefacts }: Search): readonly string[] {
  reportShare("leaks in artefacts searched", leaks.length, artefacts);
  return leaks.map((leak) => `I6: a secret leaked: ${JSON.stringify(leak)}`);
}
