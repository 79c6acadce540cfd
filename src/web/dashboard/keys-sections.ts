// What the page of API keys shows. No secret is read for it. Pure.

import { KEY_STATES, KEYS_PER_PAGE, type KeyStatus, type KeysData, type RotationKeys } from "../../facts/operations.ts";
import { counted, roundedText } from "../../show/format.ts";
import { columns, folded, type Html, type HtmlValue, html, nameHtml, numberColumns, table } from "../../show/html.ts";
import type { Section } from "../../show/page.ts";
import { foldedText, instantHtml, stateHtml } from "./cells.ts";
import { chosen, listForm, pageLinksOf, selectField, textField } from "./lists.ts";
import type { View } from "./view.ts";

const KEY_COLUMNS = [
  ...[...columns("Key", "State"), ...numberColumns("Age")],
  ...columns("Last seen in use", "Due for removal", "Comment", "Note"),
];

/** The parameters that the URL may have are all about the keys that are listed. */
export function keysSections({ rotations, found, events }: KeysData, view: View): readonly Section[] {
  const isNarrowed = chosen(view, "search") !== undefined || chosen(view, "state") !== undefined;
  const keys =
    rotations.length === 0 && !isNarrowed
      ? html`<p class="empty">No rotation is configured. <code>rotations</code> in the configuration lets usage-export renew API keys.</p>`
      : listHtml(rotations, found, view, isNarrowed);
  return [{ id: "keys", title: "Keys by rotation", body: keys }, ...(events.length > 0 ? [eventsSection(events)] : [])];
}

function listHtml(rotations: KeysData["rotations"], found: number, view: View, isNarrowed: boolean): Html {
  const form = listForm("keys", view, [
    textField("Search", "search", chosen(view, "search")),
    selectField("State", "state", KEY_STATES, chosen(view, "state")),
  ]);
  const [gone, configured] = [true, false].map((isGone) =>
    rotations.filter(({ maxAgeDays, keys }) => (maxAgeDays === null) === isGone && (!isNarrowed || keys.length > 0)),
  );
  const summary = isNarrowed ? html`<p class="note">${counted(found, "key")} found.</p>\n` : undefined;
  const retired = gone?.map((one) => rotationHtml(one)) ?? [];
  // Keys that a person searched for, and what needs a person, are not folded.
  const isOpen = isNarrowed || gone?.some(({ warnings }) => warnings.length > 0);
  const ended =
    retired.length === 0
      ? undefined
      : isOpen
        ? html`${retired}`
        : folded(`${counted(retired.length, "rotation")} not configured any more`, html`${retired}`);
  return html`${form}${summary}${configured?.map((one) => rotationHtml(one))}${ended}${pageLinksOf("keys", view, found, KEYS_PER_PAGE)}`;
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

function rotationHtml({ rotation, isOfMany, maxAgeDays, warnings, counts, keys }: RotationKeys): Html {
  const retired = maxAgeDays === null ? " (not configured any more)" : "";
  const alerts = warnings.map((warning) => html`<p class="notice bad">${warning}</p>\n`);
  const rows = keys.map((key) => [...(isOfMany ? [nameHtml(key.project)] : []), ...keyCells(key, maxAgeDays)]);
  const columnsShown = isOfMany ? [...columns("Project"), ...KEY_COLUMNS] : KEY_COLUMNS;
  const states = Object.entries(counts).filter(([, count]) => count > 0);
  const all = states.reduce((sum, [, count]) => sum + count, 0);
  const summary =
    all > keys.length
      ? html`<p class="note">${counted(all, "key")}: ${states.map(([state, count]) => `${roundedText(String(count))} ${state}`).join(", ")}; ${keys.length} of them on this page.</p>\n`
      : undefined;
  const shown =
    rows.length > 0
      ? table(`Keys of ${rotation}, times in UTC`, columnsShown, rows)
      : all === 0
        ? html`<p class="empty">It has created no key yet.</p>\n`
        : undefined;
  return html`<h3>${nameHtml(rotation)}${retired}</h3>
${alerts}${summary}${shown}`;
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
