import { expect, test } from "vitest";
import type { Restatements } from "../../src/report/report-data.ts";
import { restatementSection } from "../../src/report/restatement-section.ts";
import { makeReportData } from "./make-report-data.ts";

const data = makeReportData();

/** The text of the note above the chart. */
function noteOf(part: Partial<Restatements>): string {
  const { body } = restatementSection({ ...data, restatements: { ...data.restatements, ...part } });
  const [, note = ""] = /<p class="note">([\s\S]*?)<\/p>/.exec(String(body)) ?? [];
  return note.replaceAll(/<[^>]*>/g, "");
}

const BY_DAYS = [
  { daysLate: 1, numbers: 3 },
  { daysLate: 4, numbers: 1 },
];

test("the note says which changes are counted, and which view has the others", () => {
  const sources = [
    { project: "production", grouping: "none" },
    { project: "staging", grouping: "tags" },
  ] as const;
  expect(noteOf({ byDaysLate: BY_DAYS, sources, metrics: ["hours", "tts_characters"] })).toBe(
    "4 changes counted. A change is counted each time a stored number is replaced, from the first reading after the end of its day on: in Hours, TTS characters, for the days 2026-10-22 to 2026-11-20, in production (the total), staging (by tags). Changes in other series or metrics, or before the day was over, are not counted here: the view bi.restatements has every change.",
  );
});

test("if no change is counted, the note does not claim that no number changed", () => {
  expect(noteOf({})).toMatch(/^No change counted\. A change is counted each time/);
});

test("the note gives no reason for the changes, because none is known", () => {
  expect(noteOf({ byDaysLate: BY_DAYS })).not.toMatch(/late|because|as usage|reaches/i);
});

test("if there are many projects, the note has only their number", () => {
  const sources = Array.from({ length: 6 }, (_, i) => ({ project: `project ${i}`, grouping: "none" as const }));
  expect(noteOf({ sources })).toContain("in one series of each of 6 projects.");
});
