// Says first whether all is well, and if not, what is wrong. Pure.

import { counted } from "../../report/figures.ts";
import { type Html, html } from "../../report/html.ts";
import { alertsOf } from "../health-state.ts";
import type { Health } from "../routes.ts";
import type { Operations } from "./operations.ts";

export type Concern = { readonly text: string; readonly section?: string };

/** What `status` would end with 1 for, one by one. What this worker can't do is a concern of whoever looks at it, whatever the others do. */
export function concernsOf(operations: Operations, health: Health): readonly Concern[] {
  return [
    ...health.reasons.map((reason) => ({ text: `this worker can't work now: ${reason}` })),
    ...alertsOf(operations),
  ];
}

export function verdict(concerns: readonly Concern[], { slices }: Operations): Html {
  if (concerns.length === 0) {
    return html`<div class="notice good"><strong>Nothing that is due is missing.</strong> ${counted(slices.complete, "slice")} complete; no job waits for a worker, and no key for a person.</div>
`;
  }
  const items = concerns.map(({ text, section }) =>
    section === undefined ? html`<li>${text}</li>` : html`<li><a href="#${section}">${text}</a></li>`,
  );
  return html`<div class="notice bad"><strong>${counted(concerns.length, "thing")} to look at</strong>
<ul>${items}</ul></div>
`;
}
