import { describe, expect, test } from "vitest";
import { addDays } from "../../src/usage/days.ts";
import type { UsageRequest } from "../../src/usage/plan.ts";
import { ALL_USAGE } from "../../src/usage/series.ts";
import { chunksOf as plannedChunks } from "../../src/worker/chunks.ts";

const RUN_DAY = "2026-03-19";

const chunksOf = (requests: readonly UsageRequest[], runDay: string) =>
  plannedChunks(requests, runDay).map((chunk) => chunk.requests);

type Part = { readonly project?: string; readonly end?: string };

function requestOf({ project = "production", end = "2026-03-18" }: Part = {}): UsageRequest {
  const series = {
    project: { id: project, name: project },
    source: "usage",
    grouping: "none",
    filter: ALL_USAGE,
  } as const;
  return { series, window: { start: addDays(end, -1), end } };
}

const many = (count: number, part: Part = {}) => Array.from({ length: count }, () => requestOf(part));

test.each([
  [1, [1]],
  [32, Array(32).fill(1)],
  [300, Array(30).fill(10)],
  [1_600, Array(32).fill(50)],
  [3_210, [...Array(64).fill(50), 10]],
])(
  "%i requests are shared out so that several workers are busy until the end, at most 50 in a chunk",
  (count, sizes) => {
    expect(chunksOf(many(count), RUN_DAY).map(({ length }) => length)).toEqual(sizes);
  },
);

test("no request is lost or doubled", () => {
  const requests = ["2026-03-18", "2026-02-01"].flatMap((end) =>
    ["production", "staging", "test"].flatMap((project) => many(33, { project, end })),
  );
  const chunked = chunksOf(requests, RUN_DAY).flat();
  expect(chunked).toHaveLength(requests.length);
  expect(new Set(chunked)).toEqual(new Set(requests));
});

describe("of requests with other days and projects", () => {
  const alternating = Array.from({ length: 160 }, (_, i) =>
    requestOf({ project: `project-${i % 4}`, end: i < 80 ? "2026-02-15" : "2026-03-18" }),
  );
  const chunks = chunksOf(alternating, RUN_DAY);

  test("the newest days come first, with the highest priority", () => {
    const days = chunks.map((chunk) => chunk[0]?.window?.end);
    expect(days).toEqual([...Array(16).fill("2026-03-18"), ...Array(16).fill("2026-02-15")]);
    const priorities = plannedChunks(alternating, RUN_DAY).map(({ priority }) => priority);
    expect(priorities).toEqual(priorities.toSorted((a, b) => b - a));
    expect(priorities[0]).toBeGreaterThan(priorities.at(-1) ?? 0);
  });

  test("those of a project stay together", () => {
    const projects = chunks.map((chunk) => new Set(chunk.map(({ series }) => series.project.id)).size);
    expect(projects).toEqual(chunks.map(() => 1));
  });
});

test("within a chunk the newest days come first, too", () => {
  const ends = ["2026-02-01", "2026-03-18", "2026-02-15"];
  const requests = Array.from({ length: 96 }, (_, i) => requestOf({ end: ends[i % 3] ?? RUN_DAY }));
  const days = chunksOf(requests, RUN_DAY).flatMap((chunk) => chunk.map(({ window }) => window?.end ?? ""));
  expect(days).toEqual(days.toSorted().reverse());
});

test("a project with very many requests has one chunk before the others have theirs, and the rest after them", () => {
  const large = many(2_000, { project: "large" });
  const small = Array.from({ length: 100 }, (_, i) => many(16, { project: `small-${i}` })).flat();
  const chunks = plannedChunks([...large, ...small], RUN_DAY).toSorted((a, b) => b.priority - a.priority);
  const isLarge = chunks.map(({ requests }) => requests.some(({ series }) => series.project.id === "large"));
  // Three of the small projects fit into a chunk.
  expect(isLarge).toEqual([true, ...Array(34).fill(false), ...Array(39).fill(true)]);
  expect(chunks.flatMap(({ requests }) => requests)).toHaveLength(3_600);
});

test("the projects of a chunk alternate, and each has all its requests there", () => {
  const requests = Array.from({ length: 400 }, (_, i) => many(16, { project: `project-${i}` })).flat();
  for (const chunk of chunksOf(requests, RUN_DAY).slice(0, -1)) {
    const projects = chunk.map(({ series }) => series.project.id);
    expect(new Set(projects.slice(0, 3)).size).toBe(3);
    expect(projects.filter((id) => id === projects[0])).toHaveLength(16);
  }
});

test("a request without a window has the priority of the run's day", () => {
  const windowless = { ...requestOf(), window: undefined };
  const [one] = plannedChunks([windowless], RUN_DAY);
  expect(one?.priority).toBe(plannedChunks([requestOf({ end: RUN_DAY })], RUN_DAY)[0]?.priority);
});
