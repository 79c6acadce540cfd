// Exports of billing: how groupings are written, and what only one of the two sources can be asked for.

import { expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { errorsFor, SAMPLE } from "./sample-config.ts";

const BILLING = {
  name: "bills",
  source: "billing",
  schedule: "45 2 * * *",
  projects: ["production"],
  window: { days: 7 },
  groupings: ["none", "line_item", ["tags", "line_item"]],
  filters: [{ name: "all" }, { name: "aura", dimensions: { line_item: "sync::aura-2", deployment: "dedicated" } }],
};

type Fields = Readonly<Record<string, unknown>>;

function withExport(job: Fields): Fields {
  return { ...SAMPLE, exports: [...SAMPLE.exports, job] };
}

/** The errors without their line. */
function errors(part: Fields): readonly string[] {
  return errorsFor(JSON.stringify(withExport({ ...BILLING, ...part }))).map((line) =>
    line.replace(/^- exports\[2\]\.?| \(line \d+\)/g, ""),
  );
}

test("a list of dimensions is one grouping, whatever its order", () => {
  const groupings = [
    "none",
    "line_item",
    ["tags", "line_item"],
    ["tags", "accessor", "deployment", "line_item"],
    ["tags"],
  ];
  const config = parseConfig(JSON.stringify(withExport({ ...BILLING, groupings })), { source: "test", baseDir: "/" });
  expect(config.exports[2]).toMatchObject({
    source: "billing",
    groupings: ["none", "line_item", "line_item,tags", "accessor,deployment,line_item,tags", "tags"],
  });
});

test.each<[string, Fields, string]>([
  ["a grouping of usage", { groupings: ["model"] }, 'groupings[0]: "model" is a grouping that only usage has'],
  ["a dimension of usage in a list", { groupings: [["tags", "model"]] }, 'groupings[0][1]: expected one of "accessor"'],
  ["a dimension twice", { groupings: [["tags", "tags"]] }, "groupings[0]: expected each dimension once"],
  ["an empty list", { groupings: [[]] }, "groupings[0]: expected at least one entry"],
  [
    "the same dimensions twice",
    {
      groupings: [
        ["tags", "line_item"],
        ["line_item", "tags"],
      ],
    },
    'groupings[1]: expected each grouping once; got "line_item,tags", which is already at exports[2].groupings[0]',
  ],
  ["no window", { window: undefined }, 'window: missing; expected one beside "source": "billing"'],
  [
    "features",
    { filters: [{ name: "f", features: { diarize: true } }] },
    "filters[0].features: is a condition that only usage has",
  ],
  [
    "a dimension of usage in a filter",
    { filters: [{ name: "f", dimensions: { endpoint: "listen" } }] },
    "filters[0].dimensions.endpoint: is a dimension that only usage has",
  ],
  [
    "an unknown deployment",
    { filters: [{ name: "f", dimensions: { deployment: "dedicate" } }] },
    'filters[0].dimensions.deployment: expected one of "self-hosted", "hosted", "beta", "dedicated"; got "dedicate"; did you mean "dedicated"?',
  ],
  ["a fan-out", { filters: [{ each: "accessor" }] }, 'filters[0].each: expected no "each" beside "source": "billing"'],
  ["an unknown source", { source: "bills" }, 'source: expected one of "usage", "billing"; got "bills"'],
  ["a list for usage", { source: "usage" }, 'groupings[2]: "line_item,tags" is a grouping that only billing has'],
])("billing with %s is refused", (_, part, message) => {
  expect(errors(part)).toContainEqual(expect.stringContaining(message));
});

test("usage has no line items", () => {
  const usage = { groupings: ["none"], filters: [{ name: "f", dimensions: { line_item: "x" } }], source: "usage" };
  expect(errors(usage)).toEqual([
    'filters[0].dimensions.line_item: is a dimension that only billing has: give it an export with "source": "billing"',
  ]);
});
