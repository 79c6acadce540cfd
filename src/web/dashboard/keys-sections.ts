// The API keys that the program renews, the next rotation first. No secret is read for it. Pure.

import { KEYS_PER_PAGE, type KeyStatus, type KeysData, type RotationKeys } from "../../facts/keys.ts";
import { counted } from "../../show/format.ts";
import {
  columns,
  foldedText,
  type Html,
  html,
  instantHtml,
  nameHtml,
  numberColumns,
  stateHtml,
  table,
} from "../../show/html.ts";
import type { Section } from "./document.ts";

const COLUMNS = [
  ...columns("Rotation", "Next rotation", "Key in use"),
  ...numberColumns("Age"),
  ...columns("Last used", "All keys"),
];

/** None where no rotation is configured and no key was made. */
export function keysSections({ rotations, found, events }: KeysData): readonly Section[] {
  if (rotations.length === 0) return [];
  const lines = rotations.flatMap(linesOf).sort((a, b) => a.daysLeft - b.daysLeft);
  const warnings = rotations.flatMap(({ rotation, warnings: texts }) =>
    texts.map((text) => html`<p class="notice bad">${nameHtml(rotation)}: ${text}</p>\n`),
  );
  const note =
    found > KEYS_PER_PAGE
      ? html`<p class="note">The first ${KEYS_PER_PAGE} of ${counted(found, "API key")}: <code>usage-export keys</code> lists all.</p>\n`
      : undefined;
  const shown = table("The next rotation first, times in UTC", COLUMNS, lines.map(lineCells));
  return [{ id: "keys", title: "API keys", body: html`${warnings}${note}${shown}${eventsHtml(events)}` }];
}

type Line = { readonly rotation: RotationKeys; readonly keys: readonly KeyStatus[]; readonly daysLeft: number };

/** One for each project of a rotation. Of a rotation that is not configured any more nothing is due. */
function linesOf(rotation: RotationKeys): readonly Line[] {
  if (rotation.keys.length === 0)
    return [{ rotation, keys: [], daysLeft: rotation.maxAgeDays === null ? Infinity : 0 }];
  return [...Map.groupBy(rotation.keys, ({ projectId }) => projectId).values()].map((keys) => {
    const inUse = keys.find(({ state }) => state === "active");
    const daysLeft =
      rotation.maxAgeDays === null ? Infinity : rotation.maxAgeDays - (inUse?.ageDays ?? rotation.maxAgeDays);
    return { rotation, keys, daysLeft };
  });
}

function lineCells({ rotation: { rotation, maxAgeDays, isOfMany }, keys, daysLeft }: Line) {
  const inUse = keys.find(({ state }) => state === "active");
  const project = isOfMany ? html` <small>${nameHtml(keys[0]?.project ?? "")}</small>` : undefined;
  const isOld = inUse !== undefined && maxAgeDays !== null && inUse.ageDays > maxAgeDays;
  const age = inUse && (maxAgeDays === null ? counted(inUse.ageDays, "day") : `${inUse.ageDays} of ${maxAgeDays} days`);
  return [
    html`${nameHtml(rotation)}${project}`,
    nextText(maxAgeDays, daysLeft),
    inUse?.apiKeyId ? nameHtml(inUse.apiKeyId) : "none",
    isOld ? html`<span class="state warn">${age}</span>` : (age ?? "–"),
    inUse ? (inUse.lastSeenInUse ?? "not yet seen") : "–",
    keys.length === 0 ? "none made yet" : keysHtml(keys),
  ];
}

function nextText(maxAgeDays: number | null, daysLeft: number): string {
  if (maxAgeDays === null) return "none: not configured any more";
  return daysLeft <= 0 ? "with its next run" : `in ${counted(daysLeft, "day")}`;
}

function keysHtml(keys: readonly KeyStatus[]): Html {
  const items = keys.map(
    ({ apiKeyId, intentId, state, ageDays, dueForRemovalAt, comment, note }) =>
      html`<li>${stateHtml(state)} ${apiKeyId === null ? html`not known; its comment holds ${nameHtml(intentId)}` : nameHtml(apiKeyId)}, ${counted(ageDays, "day")} old${
        dueForRemovalAt ? html`, due for removal since ${instantHtml(dueForRemovalAt)}` : undefined
      } ${foldedText(comment)} ${foldedText(note)}</li>`,
  );
  const states = [...Map.groupBy(keys, ({ state }) => state)].map(([state, of]) => `${of.length} ${state}`).join(", ");
  return html`<details><summary>${states}</summary><ul>${items}</ul></details>`;
}

/** A rotation is one event: the steps of a key are folded. */
function eventsHtml(events: KeysData["events"]): Html | undefined {
  if (events.length === 0) return undefined;
  const rows = [...Map.groupBy(events, ({ rotation, key }) => JSON.stringify([rotation, key])).values()].flatMap(
    (steps) => {
      const [newest] = steps;
      if (!newest) return [];
      const items = steps.map(
        ({ at, event, actor, reason }) =>
          html`<li>${instantHtml(at)} ${event.replaceAll("_", " ")} by ${nameHtml(actor)}: ${foldedText(reason)}</li>`,
      );
      return [
        [
          instantHtml(newest.at),
          nameHtml(newest.rotation),
          newest.key === null ? "–" : nameHtml(newest.key),
          html`<details><summary>${newest.event.replaceAll("_", " ")}${steps.length > 1 ? `, ${counted(steps.length, "step")}` : ""}</summary><ul>${items}</ul></details>`,
        ],
      ];
    },
  );
  return table(
    "What happened to keys, the newest first, times in UTC",
    columns("At", "Rotation", "Key", "Newest step"),
    rows,
  );
}
