// Says first whether all is well, and if not, what is wrong. Pure.

import { counted } from "../../report/figures.ts";
import { type Html, html } from "../../report/html.ts";
import type { Health } from "../routes.ts";
import type { Operations } from "./operations.ts";

export type Concern = {
  readonly text: string;
  /** The section that says more. */
  readonly section?: string;
};

/** What `status` would end with 1 for, one by one. What this worker can't do is a concern of whoever looks at it, whatever the others do. */
export function concernsOf({ jobs, slices, rotations }: Operations, health: Health): readonly Concern[] {
  const { missing, failed, suspect } = slices;
  return [
    ...health.reasons.map((reason) => ({ text: `this worker can't work now: ${reason}` })),
    ...jobs.flatMap(({ kind, job, overdueSince }) =>
      overdueSince ? [{ text: `${kind} ${job} is overdue: no worker has taken it up`, section: "jobs" }] : [],
    ),
    ...concern(missing, `${counted(missing, "slice")} missing: due and never read`, "gaps"),
    ...concern(failed, `${counted(failed, "slice")} failed: the newest reading went wrong`, "gaps"),
    ...concern(suspect, `${counted(suspect, "slice")} suspect: empty where there were numbers, which stay`, "gaps"),
    ...rotations.flatMap(({ rotation, warnings }) =>
      warnings.map((warning) => ({ text: `rotation ${rotation}: ${warning}`, section: "keys" })),
    ),
  ];
}

function concern(count: number, text: string, section: string): readonly Concern[] {
  return count > 0 ? [{ text, section }] : [];
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
