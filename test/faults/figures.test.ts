import { expect, test } from "vitest";
import { figuresTable } from "./figures.ts";

test("what the parts found becomes one table with a sum, and other figures below it", () => {
  const lines = [
    { part: "export, kill", cases: 120, violations: 0, seconds: 60 },
    { figure: "recovered after SIGKILL within", value: "26 s" },
    { part: "export, cut", cases: 80, violations: 2, seconds: 41 },
  ];

  const table = figuresTable(lines.map((line) => `${JSON.stringify(line)}\n`).join(""));

  expect(table.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
    ["part", "cases", "violations", "seconds"],
    ["export, kill", "120", "0", "60"],
    ["export, cut", "80", "2", "41"],
    ["all", "200", "2", "101"],
    [""],
    ["recovered after SIGKILL within", "26 s"],
    [""],
  ]);
});
