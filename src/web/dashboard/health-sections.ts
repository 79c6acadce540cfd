// The page Data health: why numbers are missing, which ones, and whether jobs and API keys do what they should. Pure.

import { causeTitle } from "../../facts/conditions.ts";
import { type Coverage, DAY_QUALITIES, type DayQuality, type ProjectCoverage } from "../../facts/coverage.ts";
import type { HealthState } from "../../facts/health.ts";
import type { StoredRun } from "../../facts/jobs.ts";
import { KEYS_SHOWN_MAX, type KeyStatus, type KeysData, type RotationKeys } from "../../facts/keys.ts";
import { capitalized, counted, periodText, roundedText, windowsByKind } from "../../show/format.ts";
import {
  foldedText,
  type Html,
  html,
  instantHtml,
  nameHtml,
  shortNameHtml,
  stackedTable,
  stateHtml,
} from "../../show/html.ts";
import { present } from "../../text.ts";
import { dayCount, daysOf, type Window } from "../../usage/days.ts";
import { groupingNoun } from "../../usage/dimensions.ts";
import type { SeriesName } from "../../usage/series.ts";
import { pageHref, type View } from "../url.ts";
import type { Section } from "./frame.ts";
import { jobsSection, projectTable, runsSection } from "./jobs-sections.ts";

export type DataHealth = {
  readonly coverage: Coverage;
  /** The newest first. */
  readonly runs: readonly StoredRun[];
  readonly keys: KeysData;
};

export function healthSections({ coverage, runs, keys }: DataHealth, view: View, health: HealthState) {
  return present<Section>([
    health.causes.length > 0 && causesSection(health),
    coverage.projects.length > 0 && { id: "gaps", title: "Projects", body: projectsHtml(coverage, view) },
    health.jobs.length > 0 && jobsSection(health, runs),
    runs.length > 0 && runsSection(runs, view),
    keys.rotations.length > 0 && keysSection(keys),
  ]);
}

/** One row per cause, because an outage affects many days and projects at once. */
function causesSection({ causes }: HealthState): Section {
  const rows = causes.map((cause) => [
    html`<span class="state bad">${capitalized(causeTitle(cause))}</span> <small>${foldedText(cause.error)}</small>`,
    instantHtml(cause.since),
    ...[cause.days, cause.projects].map((count) => roundedText(String(count))),
    shownText(cause),
    cause.isRetried ? "within a day, by the worker" : "not by itself",
  ]);
  const columns = ["Cause", "Since", { numbers: "Days" }, { numbers: "Projects" }, "Shown for these days", "Next try"];
  const body = stackedTable("The cause with the most readings first", columns, rows);
  return { id: "causes", title: "Why days are incomplete", body };
}

function shownText({ slices, slicesWithNumbers }: HealthState["causes"][number]): string {
  if (slicesWithNumbers === 0) return "no numbers";
  return slicesWithNumbers < slices ? "older numbers, where there are some" : "older numbers";
}

const QUALITY_WORDS: Readonly<Record<DayQuality | "not-due", string>> = {
  complete: "complete",
  stale: "older numbers, as no later reading succeeded",
  suspect: "in doubt: the newest answer was not believed, so earlier numbers are shown",
  missing: "no numbers",
  "not-due": "not due",
};

const PROJECT_COLUMNS = ["Project", "Days", "Incomplete days", "Complete up to", "Last read"];
function projectsHtml({ projects, projectCount, undated }: Coverage, view: View): Html {
  const { period } = view;
  const rows = projects.map((one) => [
    html`<a href="${pageHref("usage", { ...view, project: one.projectId })}">${shortNameHtml(one.project)}</a>`,
    stripHtml(period, one),
    one.gaps.length === 0 ? "none" : gapsHtml(period, one),
    one.freshThrough ?? "never",
    one.fetchedAt === null ? "never" : instantHtml(one.fetchedAt),
  ]);
  const hasGaps = projects.some(({ gaps }) => gaps.length > 0);
  const caption = hasGaps ? "The projects with the most incomplete days first" : "How complete each project is";
  const more = projectCount - projects.length;
  return html`${undatedHtml(undated)}${legendHtml(period, projects)}${projectTable(caption, PROJECT_COLUMNS, rows)}${more > 0 && html`<p class="note">${counted(more, "project")} not shown, with fewer incomplete days. Choose one above.</p>`}`;
}

/** Explains the colours that occur in the bars, unless every day is complete. */
function legendHtml(period: Window, projects: readonly ProjectCoverage[]): Html | undefined {
  const all = daysOf(period);
  const shown = new Set(projects.flatMap(({ days }) => all.map((day) => days[day] ?? "not-due")));
  const qualities = [...DAY_QUALITIES, "not-due" as const].filter((quality) => shown.has(quality));
  if (qualities.length === 1 && qualities[0] === "complete") return undefined;
  return html`<p class="note key">${qualities.map((quality) => html`<span><span class="swatch ${quality}"></span>${QUALITY_WORDS[quality]}</span> `)}</p>\n`;
}

function undatedHtml(undated: Coverage["undated"]): Html | undefined {
  if (undated.length === 0) return undefined;
  const names = undated.map((one, i) => html`${i > 0 && "; "}${nameHtml(one.project)}, ${seriesHtml(one)}`);
  return html`<p class="note">The service does not say to which days these numbers belong: ${names}. No figure contains them; the view <code>bi.usage_snapshot</code> has them.</p>\n`;
}

/** A bar of the project's days: a rectangle for each window of the same quality. */
function stripHtml(period: Window, { days, project }: ProjectCoverage): Html {
  const all = daysOf(period);
  const percent = (count: number) => `${((count * 100) / all.length).toFixed(3)}%`;
  const parts = windowsByKind(all, (day) => days[day] ?? "not-due").map(({ kind, ...window }) => {
    const x = percent(all.indexOf(window.start));
    const text = `${periodText(window)}: ${QUALITY_WORDS[kind]}`;
    return html`<rect class="${kind}" x="${x}" width="${percent(dayCount(window))}" height="100%"><title>${text}</title></rect>`;
  });
  const incomplete = countIncompleteDays(period, days);
  const label = incomplete === 0 ? "all complete" : `${counted(incomplete, "day")} not complete`;
  return html`<svg class="strip" role="img" aria-label="${project}: ${label}">${parts}</svg>`;
}

function countIncompleteDays(period: Window, days: ProjectCoverage["days"]): number {
  return daysOf(period).filter((day) => (days[day] ?? "complete") !== "complete").length;
}

function gapsHtml(period: Window, { gaps, days }: ProjectCoverage): Html {
  const items = gaps.map(
    (gap) =>
      html`<li>${seriesHtml(gap)}, ${periodText(gap)}: ${QUALITY_WORDS[gap.quality]}${gap.error !== null && html`. <bdi>${gap.error}</bdi>`}</li>`,
  );
  return html`<details><summary>${counted(countIncompleteDays(period, days), "day")}</summary><ul>${items}</ul></details>`;
}

/** "usage by model", or with a filter "usage by model, voice". */
function seriesHtml({ source, grouping, filter }: Omit<SeriesName, "project">): Html {
  const what = source === "billing" ? "billed cost" : "usage";
  const by = grouping === "none" ? "in total" : `by ${groupingNoun(grouping)}`;
  return html`${what} ${by}${filter !== "all" && html`, ${nameHtml(filter)}`}`;
}

const KEY_COLUMNS = ["Rotation", "Next rotation", "API key in use", { numbers: "Age" }, "Last used", "All keys"];

function keysSection({ rotations, hasMore, events }: KeysData): Section {
  const byNextRotation = rotations.toSorted((a, b) => daysLeft(a) - daysLeft(b));
  const note =
    hasMore &&
    html`<p class="note">The first ${KEYS_SHOWN_MAX} API keys: <code>usage-export keys</code> lists all.</p>\n`;
  const shown = stackedTable("The next rotation first", KEY_COLUMNS, byNextRotation.map(rotationCells));
  return { id: "keys", title: "API keys", body: html`${note}${shown}${events.length > 0 && eventsHtml(events)}` };
}

const keyInUse = ({ keys }: RotationKeys) => keys.find(({ state }) => state === "active");

/** The days until the key is due for rotation. A rotation that is no longer configured is never due. */
function daysLeft(rotation: RotationKeys): number {
  if (rotation.maxAgeDays === null) return Infinity;
  return rotation.maxAgeDays - (keyInUse(rotation)?.ageDays ?? rotation.maxAgeDays);
}

function rotationCells(rotationKeys: RotationKeys) {
  const { rotation, maxAgeDays, project, keys } = rotationKeys;
  const inUse = keyInUse(rotationKeys);
  const left = daysLeft(rotationKeys);
  const age = inUse && (maxAgeDays === null ? counted(inUse.ageDays, "day") : `${inUse.ageDays} of ${maxAgeDays} days`);
  return [
    html`${nameHtml(rotation)}${project !== undefined && html` <small>${nameHtml(project)}</small>`}`,
    nextRotationText(left),
    inUse?.apiKeyId ? nameHtml(inUse.apiKeyId) : "none",
    left < 0 ? html`<span class="state warn">${age}</span>` : (age ?? "–"),
    inUse ? (inUse.lastSeenInUse ?? "never seen") : "–",
    keys.length === 0 ? "none made yet" : keysHtml(keys),
  ];
}

function nextRotationText(left: number): string {
  if (left === Infinity) return "none, as it is no longer configured";
  return left <= 0 ? "with its next run" : `in ${counted(left, "day")}`;
}

function keysHtml(keys: readonly KeyStatus[]): Html {
  const items = keys.map(
    ({ apiKeyId, intentId, state, ageDays, dueForRemovalAt, comment, note }) =>
      html`<li>${stateHtml(state)} ${apiKeyId === null ? html`id unknown, its comment contains ${nameHtml(intentId)}` : nameHtml(apiKeyId)}, ${counted(ageDays, "day")} old${
        dueForRemovalAt !== null && html`, due for removal since ${instantHtml(dueForRemovalAt)}`
      } ${foldedText(comment)} ${foldedText(note)}</li>`,
  );
  const states = [...Map.groupBy(keys, ({ state }) => state)].map(([state, { length }]) => `${length} ${state}`);
  return html`<details><summary>${states.join(", ")}</summary><ul>${items}</ul></details>`;
}

/** One row per key, with its newest step; the list of all its steps is folded. */
function eventsHtml(events: KeysData["events"]): Html {
  const byKey = Map.groupBy(events, ({ rotation, key }) => JSON.stringify([rotation, key]));
  const rows = [...byKey.values()].flatMap((steps) => {
    const [newest] = steps;
    if (!newest) return [];
    const items = steps.map(
      ({ at, event, actor, reason }) =>
        html`<li>${instantHtml(at)} ${event.replaceAll("_", " ")} by ${nameHtml(actor)}: ${foldedText(reason)}</li>`,
    );
    const last = `${newest.event.replaceAll("_", " ")}${steps.length > 1 ? `, ${counted(steps.length, "step")}` : ""}`;
    const key = newest.key === null ? "–" : nameHtml(newest.key);
    const stepsHtml = html`<details><summary>${last}</summary><ul>${items}</ul></details>`;
    return [[instantHtml(newest.at), nameHtml(newest.rotation), key, stepsHtml]];
  });
  return stackedTable("Changes of keys, the newest first", ["At", "Rotation", "API key", "Last step"], rows);
}
