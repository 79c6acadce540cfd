// The keys of each rotation, as a section of the dashboard. Never a secret: none is read. Pure.

import { type Filling, type Html, html } from "../../report/html.ts";
import { nameHtml } from "../../report/names.ts";
import type { Section } from "../../report/page.ts";
import { table } from "../../report/table.ts";
import { instant, longText, stateHtml } from "./cells.ts";
import type { KeyLine, RotationLine } from "./operations.ts";

const COLUMNS = [
  ...[{ title: "Key" }, { title: "State" }, { title: "Age", numeric: true }, { title: "Last seen in use" }],
  ...[{ title: "Due for removal" }, { title: "Comment" }, { title: "Note" }],
];

export function keysSection(rotations: readonly RotationLine[]): Section {
  const body =
    rotations.length === 0
      ? html`<p class="empty">No rotation is configured.</p>`
      : html`${rotations.map(rotationHtml)}`;
  return { id: "keys", title: "API keys", body };
}

function rotationHtml({ rotation, maxAgeDays, warnings, keys }: RotationLine): Html {
  const retired = maxAgeDays === null ? " (not configured any more)" : "";
  const alerts = warnings.map((warning) => html`<p class="notice bad">${warning}</p>\n`);
  const rows = keys.map((key) => keyCells(key, maxAgeDays));
  const made =
    rows.length === 0
      ? html`<p class="empty">It has made no key yet.</p>\n`
      : table(`Keys of ${rotation}, times in UTC`, COLUMNS, rows);
  return html`<h3>${nameHtml(rotation)}${retired}</h3>
${alerts}${made}`;
}

function keyCells(key: KeyLine, maxAgeDays: number | null): readonly Filling[] {
  const { apiKeyId, intentId, state, ageDays, lastSeenInUse, dueForRemovalAt, comment, note } = key;
  // Only the key in use is replaced when it comes of age.
  const limitDays = state === "active" ? maxAgeDays : null;
  return [
    apiKeyId === null ? `not known; its comment holds ${intentId}` : nameHtml(apiKeyId),
    stateHtml(state),
    ageHtml(ageDays, limitDays),
    lastSeenInUse ?? "unknown",
    dueForRemovalAt ? html`since ${instant(dueForRemovalAt)}` : "no",
    longText(comment),
    longText(note),
  ];
}

function ageHtml(ageDays: number, limitDays: number | null): Filling {
  if (limitDays === null) return `${ageDays} days`;
  const text = `${ageDays} of ${limitDays} days`;
  return ageDays > limitDays ? html`<span class="state warn">${text}</span>` : text;
}
