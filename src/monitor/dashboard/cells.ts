// The pieces that tables of the dashboard are made of. Pure.

import { instantText } from "../../report/days.ts";
import { type Html, html } from "../../report/html.ts";
import { shortened } from "../../report/names.ts";

const SUMMARY_COLUMNS = 120;

/** Without a zone: the captions say that all times are in UTC. */
export function instant(moment: Date): Html {
  return html`<time datetime="${moment.toISOString()}">${instantText(moment).replace(" UTC", "")}</time>`;
}

/** How a state is marked: by its word first, and by a colour. */
const LOOKS: Readonly<Record<string, "good" | "warn" | "bad">> = {
  ...{ ok: "good", complete: "good", active: "good", live: "good" },
  ...{ suspect: "warn", skipped: "warn", stopped: "warn", paused: "warn", draining: "warn", silent: "warn" },
  ...{ failed: "bad", missing: "bad", interrupted: "bad", orphan: "bad", overdue: "bad" },
};

export function stateHtml(name: string): Html {
  return html`<span class="state ${LOOKS[name]}">${name}</span>`;
}

/** The whole text, folded where it is long. */
export function longText(text: string | null): Html | undefined {
  if (text === null || text === "") return undefined;
  const start = shortened(text, SUMMARY_COLUMNS);
  if (start === text) return html`<bdi>${text}</bdi>`;
  return html`<details><summary><bdi>${start}</bdi></summary><bdi>${text}</bdi></details>`;
}
