// Valid answers in both dialects. The fault tests cut and change them. Pure.

export type Window = { readonly start: string; readonly end: string };

/** A request of the program, and a valid answer to it. */
export type Fixture = {
  readonly name: string;
  readonly dialect: "interface" | "2026";
  readonly grouping: "none" | "endpoint" | "model" | "tags" | "accessor";
  /** The grouping's name in the request, which depends on the dialect. */
  readonly askedAs: string;
  /** Undefined if the request has no dates. */
  readonly windowDays: number | undefined;
  readonly body: (window: Window | undefined) => string;
};

const AMOUNTS = {
  ...{ hours: 1619.7242069444444, total_hours: 1621.7395791666668, agent_hours: 41.33564388888889 },
  ...{ tokens_in: 0, tokens_out: 0, tts_characters: 9158866, requests: 373381 },
};
const NO_VALUES = { accessor: null, deployment: null, endpoint: null, feature_set: null, method: null };

const daily = (window: Window | undefined, results: readonly unknown[]) =>
  JSON.stringify({ ...window, resolution: { units: "day", amount: 1 }, results });

export const FIXTURES: readonly Fixture[] = [
  {
    ...{ name: "the total of two days", dialect: "interface", grouping: "none", askedAs: "none", windowDays: 2 },
    body: (window) =>
      daily(window, [
        { ...AMOUNTS, grouping: { start: window?.start, end: window?.start, ...NO_VALUES, model: null, tags: null } },
        { hours: 0.1, requests: 7, grouping: { start: window?.end, end: window?.end } },
      ]),
  },
  {
    ...{ name: "sets of tags", dialect: "interface", grouping: "tags", askedAs: "tags", windowDays: 1 },
    body: (window) => {
      const tagged = (tags: readonly string[] | null, requests: number) => ({
        hours: requests / 8,
        requests,
        grouping: { start: window?.start, end: window?.end, tags },
      });
      return daily(window, [tagged(["prod"], 3), tagged(["zürich", "prod"], 5), tagged([], 2), tagged(null, 11)]);
    },
  },
  {
    ...{ name: "endpoints without a date", dialect: "interface", grouping: "endpoint", askedAs: "endpoint" },
    windowDays: undefined,
    body: () =>
      JSON.stringify({
        results: [
          { ...AMOUNTS, video_frames: 12.5, grouping: { endpoint: "listen" } },
          { requests: 1e3, tts_characters: 4, grouping: { endpoint: "speak" } },
        ],
      }),
  },
  {
    ...{ name: "models of 2026", dialect: "2026", grouping: "model", askedAs: "models", windowDays: 2 },
    body: (window) => {
      const used = (day: string | undefined, models: readonly (string | null)[] | null, requests: number) => ({
        ...AMOUNTS,
        requests,
        grouping: { start: day, end: day, ...NO_VALUES, models, tags: null },
      });
      return daily(window, [
        used(window?.start, ["nova-3", "2-general"], 9),
        used(window?.end, ["aura"], 2),
        used(window?.end, [null], 1),
      ]);
    },
  },
  {
    ...{
      name: "accessors of 2026, outside a grouping",
      dialect: "2026",
      grouping: "accessor",
      askedAs: "accessor",
      windowDays: 1,
    },
    body: (window) =>
      daily(window, [
        { ...AMOUNTS, start: window?.start, end: `${window?.end}T00:00:00Z`, accessor: "8f3b1c9e-11d2" },
        { hours: 2, requests: 4, start: window?.start, accessor: null },
      ]),
  },
];
