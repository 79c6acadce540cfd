// What the page of API keys shows. No secret is read for it. Pure.

import type { KeyStatus, KeysData, RotationKeys } from "../../health/operations.ts";
import { columns, type Html, type HtmlValue, html, nameHtml, numberColumns, table } from "../../report/html.ts";
import type { Section } from "../../report/page.ts";
import { foldedText, instantHtml, stateHtml } from "./cells.ts";

const KEY_COLUMNS = [
  ...[...columns("Key", "State"), ...numberColumns("Age")],
  ...columns("Last seen in use", "Due for removal", "Comment", "Note"),
];

export function keysSections({ rotations, events }: KeysData): readonly Section[] {
  const keys =
    rotations.length === 0
      ? html`<p class="empty">No rotation is configured. <code>rotations</code> in the configuration lets usage-export renew API keys.</p>`
      : html`${rotations.map(rotationHtml)}`;
  return [{ id: "keys", title: "Keys by rotation", body: keys }, ...(events.length > 0 ? [eventsSection(events)] : [])];
}

function eventsSection(events: KeysData["events"]): Section {
  const rows = events.map(({ at, rotation, key, event, actor, reason }) => [
    instantHtml(at),
    event.replaceAll("_", " "),
    nameHtml(rotation),
    key === null ? "–" : nameHtml(key),
    nameHtml(actor),
    foldedText(reason),
  ]);
  const titles = columns("At", "Event", "Rotation", "Key", "By", "Why");
  return { id: "events", title: "Events", body: table("The newest, times in UTC", titles, rows) };
}

/** Of a rotation of many projects more keys would hide the other rotations; the command `keys` lists them all. */
const KEYS_SHOWN_MAX = 100;

function rotationHtml({ rotation, isOfMany, maxAgeDays, warnings, keys }: RotationKeys): Html {
  const retired = maxAgeDays === null ? " (not configured any more)" : "";
  const alerts = warnings.map((warning) => html`<p class="notice bad">${warning}</p>\n`);
  const rows = keys
    .slice(0, isOfMany ? KEYS_SHOWN_MAX : keys.length)
    .map((key) => [...(isOfMany ? [nameHtml(key.project)] : []), ...keyCells(key, maxAgeDays)]);
  const columnsShown = isOfMany ? [...columns("Project"), ...KEY_COLUMNS] : KEY_COLUMNS;
  const more = keys.length - rows.length;
  const shown =
    rows.length === 0
      ? html`<p class="empty">It has created no key yet.</p>\n`
      : table(`Keys of ${rotation}, times in UTC`, columnsShown, rows);
  const rest = more > 0 ? html`<p class="note">and ${more} more: <code>usage-export keys</code> lists them.</p>\n` : "";
  return html`<h3>${nameHtml(rotation)}${retired}</h3>
${alerts}${shown}${rest}`;
}

function keyCells(key: KeyStatus, maxAgeDays: number | null): readonly HtmlValue[] {
  const { apiKeyId, intentId, state, ageDays, lastSeenInUse, dueForRemovalAt, comment, note } = key;
  // Only the key in use is replaced when it reaches its maximum age.
  const limitDays = state === "active" ? maxAgeDays : null;
  return [
    apiKeyId === null ? `not known; its comment holds ${intentId}` : nameHtml(apiKeyId),
    stateHtml(state),
    ageHtml(ageDays, limitDays),
    lastSeenInUse ?? "unknown",
    dueForRemovalAt ? html`since ${instantHtml(dueForRemovalAt)}` : "no",
    foldedText(comment),
    foldedText(note),
  ];
}

function ageHtml(ageDays: number, limitDays: number | null): HtmlValue {
  if (limitDays === null) return `${ageDays} days`;
  const text = `${ageDays} of ${limitDays} days`;
  return ageDays > limitDays ? html`<span class="state warn">${text}</span>` : text;
}
