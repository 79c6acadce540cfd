// Cells that the tables of several pages have. Pure.

import type { HealthState } from "../../facts/health.ts";
import { instantText } from "../../show/format.ts";
import { type Html, html, truncatedName } from "../../show/html.ts";

const SUMMARY_COLUMNS = 120;

/** Without a zone: the captions say that all times are in UTC. */
export function instantHtml(moment: Date): Html {
  return html`<time datetime="${moment.toISOString()}">${instantText(moment).replace(" UTC", "")}</time>`;
}

/** The colour of a state, which is shown by its word too. */
const STATE_CLASSES: Readonly<Record<string, "good" | "warn" | "bad">> = {
  ...{ ok: "good", complete: "good", active: "good", live: "good" },
  ...{ suspect: "warn", skipped: "warn", stopped: "warn", paused: "warn", draining: "warn", silent: "warn" },
  ...{ failed: "bad", missing: "bad", interrupted: "bad", orphan: "bad", overdue: "bad" },
};

export function stateHtml(name: string): Html {
  return html`<span class="state ${STATE_CLASSES[name]}">${name}</span>`;
}

/** The whole text, folded if it is long. */
export function foldedText(text: string | null): Html | undefined {
  if (text === null || text === "") return undefined;
  const start = truncatedName(text, SUMMARY_COLUMNS);
  if (start === text) return html`<bdi>${text}</bdi>`;
  return html`<details><summary><bdi>${start}</bdi></summary><bdi>${text}</bdi></details>`;
}

/** "The service does not answer (503)". */
export function causeWords({
  code,
  error,
  project,
}: Pick<HealthState["causes"][number], "code" | "error" | "project">): string {
  const [, status] = /\b([45]\d\d)\b/.exec(error) ?? [];
  const answer = status === undefined ? "" : ` (${status})`;
  const key = project === undefined ? "an API key" : `the API key of ${project}`;
  if (code === "unavailable") return `The service does not answer${answer}`;
  if (code === "unauthorized") return `The service refuses ${key}${answer}`;
  return code === "rate_limited" ? `The service asks to wait${answer}` : `Reading usage fails${answer}`;
}
