import { expect, test } from "vitest";
import { type ChartDescription, decodeDescription, encodeDescription } from "../../src/report/chart-description.ts";
import { HOSTILE_NAMES } from "./hostile-names.ts";

const description: ChartDescription = {
  kind: "bars",
  unit: "hours",
  days: ["2026-11-18", "2026-11-19"],
  series: [
    ...HOSTILE_NAMES.map((name, i) => ({ name, look: i, values: ["9007199254740993.00000000000000000001", null] })),
    { name: "before", look: "before", values: ["1", "2"], days: ["2025-11-18", "2025-11-19"], href: "./usage?x=1 2" },
  ],
  marks: [{ label: "not read", days: ["2026-11-18"], pattern: "dotted" }],
};

test("a browser reads the description that the server wrote: every digit, every name, and what is not known", () => {
  expect(decodeDescription(encodeDescription(description))).toEqual(description);
});

test("a chart of no days is described too", () => {
  const none = { ...description, days: [], marks: [], series: [{ name: "nova-3", look: 0, values: [] }] };
  expect(decodeDescription(encodeDescription(none))).toEqual(none);
});
