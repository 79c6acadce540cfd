// Searches a case for secrets.

import { findLeaks, type Leak, type Places } from "../support/leaks.ts";

export async function leakViolations(secrets: readonly string[], places: Places): Promise<readonly string[]> {
  return asViolations(await findLeaks(secrets, places));
}

export function asViolations(leaks: readonly Leak[]): readonly string[] {
  return leaks.map((leak) => `I6: a secret leaked: ${JSON.stringify(leak)}`);
}
