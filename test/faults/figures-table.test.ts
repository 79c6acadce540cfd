import { expect, test } from "vitest";
import type { Line } from "./figures.ts";
import { figuresTable } from "./figures-table.ts";

function rowsOf(...lines: readonly Line[]): readonly (readonly string[])[] {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  return figuresTable(text)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.trim().split(/ {2,}/));
}

test("cases are summed by part and by kind", () => {
  const rows = rowsOf(
    {
      part: "export, kill",
      kind: "kill",
      cases: 120,
      among: 300,
      unreached: 3,
      violations: 0,
      seconds: 60,
      points: "2 / 5",
    },
    { part: "export, cut", kind: "cut", cases: 80, violations: 2, seconds: 41 },
    { part: "backfill, kill", kind: "kill", cases: 10, unreached: 1, violations: 0, seconds: 9 },
    { part: "wrong configurations", cases: 7, violations: 0, seconds: 1 },
  );

  expect(rows).toEqual([
    ["part", "cases", "of", "unreached", "violations", "seconds", "every n-th, with 1 / 2 / 3 programs"],
    ["export, kill", "120", "300", "3", "0", "60", "2 / 5"],
    ["export, cut", "80", "80", "0", "2", "41"],
    ["backfill, kill", "10", "10", "1", "0", "9"],
    ["wrong configurations", "7", "7", "0", "0", "1"],
    ["all", "217", "397", "4", "2", "111"],
    ["kind", "cases", "of", "unreached", "violations", "seconds"],
    ["kill", "130", "310", "4", "0", "69"],
    ["cut", "80", "80", "0", "2", "41"],
    ["wrong configurations", "7", "7", "0", "0", "1"],
  ]);
});

test("shares are added up, and of several amounts the highest is shown", () => {
  const rows = rowsOf(
    { figure: "sabotages caught", value: "25 of 25" },
    { share: "orphans flagged", count: 2, of: 2 },
    { highest: "recovery after SIGKILL", value: 9, unit: "s", where: "export, point 7" },
    { highest: "recovery after SIGKILL", value: 26, unit: "s", where: "worker, point 3" },
    { highest: "recovery after SIGKILL", value: 11, unit: "s", where: "rotation, point 1" },
    { share: "orphans flagged", count: 3, of: 4 },
  );

  expect(rows.slice(3)).toEqual([
    ["sabotages caught", "25 of 25"],
    ["orphans flagged", "5 of 6"],
    ["recovery after SIGKILL", "26 s (worker, point 3)"],
  ]);
});
