// The dimensions that usage and billing can be grouped and filtered by. The configuration, the requests, the database and the pages follow
// from these entries; CONTRIBUTING.md says how to add one. Pure.

/** The breakdown of the service that the numbers of a series come from. */
export const SOURCES = ["usage", "billing"] as const;
export type Source = (typeof SOURCES)[number];

/** The names of dimensions that a service understands: those of the published interface, or those of the public service in 2026. */
export const DIALECTS = ["interface", "2026"] as const;
export type Dialect = (typeof DIALECTS)[number];

type DimensionEntry = {
  /** The name in the interface, as a grouping and as a filter. No feature may have the same name. */
  readonly name: string;
  readonly sources: readonly Source[];
  /** What the configuration's schema says about a filter by this dimension. */
  readonly description: string;
  /** What people call a value, unless that is `name` with its underscores as spaces. */
  readonly noun?: string;
  /** A request may count in several groups, so their usage does not add up to the total. */
  readonly overlaps?: true;
  /** What one value is called, if a group may be a set of values. The name of the view bi.usage_by_single_MEMBER ends with it. */
  readonly member?: string;
  /** Whether a fan-out may make a filter for each value. For this, both dialects must filter by the same values that they group by. */
  readonly hasEach?: true;
  /** The names in dialect "2026" where they differ from `name`. `filter` is null if the dialect has no such filter. */
  readonly in2026?: { readonly grouping?: string; readonly filter?: string | null };
  /** Whether dialect "2026" filters by ids, though it groups by names. */
  readonly in2026FiltersById?: true;
  /** The values that the published interface lists, for which the emulator makes usage. Those of other dimensions are free text. */
  readonly values?: Readonly<Partial<Record<Source, readonly string[]>>>;
  /** The sources whose usage or charges always have a value. So an answer without any value was not grouped by the dimension. */
  readonly alwaysFilledIn?: readonly Source[];
};

/** In order of preference: if the total is not exported, it is added up from the first dimension that is exported and adds up. */
const TABLE = [
  {
    name: "line_item",
    sources: ["billing"],
    description: 'The line item of the bill, such as "streaming::nova-3". Billing only.',
    alwaysFilledIn: ["billing"],
  },
  {
    name: "model",
    sources: ["usage"],
    description: "The model used.",
    member: "model",
    in2026: { grouping: "models" },
    in2026FiltersById: true,
    alwaysFilledIn: ["usage"],
  },
  {
    name: "accessor",
    sources: ["usage", "billing"],
    description: "The public identifier of an API key.",
    noun: "API key",
    hasEach: true,
    alwaysFilledIn: ["billing"],
  },
  {
    name: "tags",
    sources: ["usage", "billing"],
    description: "A tag used.",
    overlaps: true,
    member: "tag",
    hasEach: true,
    in2026: { filter: "tag" },
  },
  {
    name: "endpoint",
    sources: ["usage"],
    description: "The endpoint used.",
    hasEach: true,
    values: { usage: ["listen", "speak", "agent", "read"] },
    alwaysFilledIn: ["usage"],
  },
  {
    name: "method",
    sources: ["usage"],
    description: "The processing method.",
    hasEach: true,
    values: { usage: ["sync", "async", "streaming"] },
    alwaysFilledIn: ["usage"],
  },
  {
    name: "deployment",
    sources: ["usage", "billing"],
    description: "The deployment type.",
    hasEach: true,
    values: { usage: ["self-hosted", "hosted", "beta"], billing: ["self-hosted", "hosted", "beta", "dedicated"] },
    alwaysFilledIn: ["billing"],
  },
  {
    name: "feature_set",
    sources: ["usage"],
    description: 'The features used together. The dialect "2026" has no such filter.',
    overlaps: true,
    member: "feature",
    in2026: { filter: null },
  },
] as const satisfies readonly DimensionEntry[];

type Entry = (typeof TABLE)[number];
export type Dimension = Entry["name"];
export type UsageDimension = Extract<Entry, { readonly sources: readonly ["usage", ...Source[]] }>["name"];
export type BillingDimension = Extract<Entry, { readonly sources: readonly [...Source[], "billing"] }>["name"];
export type SetDimension = Extract<Entry, { readonly member: string }>["name"];
export type EachDimension = Extract<Entry, { readonly hasEach: true }>["name"];

const ENTRIES: ReadonlyMap<string, DimensionEntry> = new Map(TABLE.map((entry) => [entry.name, entry]));

export function dimension(name: Dimension): DimensionEntry {
  const entry = ENTRIES.get(name);
  if (!entry) throw new Error(`expected a dimension, got ${JSON.stringify(name)}`);
  return entry;
}

/** In alphabetical order, as in the name of a grouping by several dimensions, which only billing has. */
function namesOf<Name extends Dimension>(isWanted: (entry: DimensionEntry) => boolean): readonly Name[] {
  return TABLE.filter(isWanted)
    .map(({ name }) => name as Name)
    .sort();
}

export const DIMENSIONS = namesOf<Dimension>(() => true);
export const USAGE_DIMENSIONS = namesOf<UsageDimension>(({ sources }) => sources.includes("usage"));
export const BILLING_DIMENSIONS = namesOf<BillingDimension>(({ sources }) => sources.includes("billing"));
export const EACH_DIMENSIONS = namesOf<EachDimension>(({ hasEach }) => hasEach === true);

export const DIMENSIONS_OF: Readonly<Record<Source, readonly Dimension[]>> = {
  usage: USAGE_DIMENSIONS,
  billing: BILLING_DIMENSIONS,
};

export function groupingIn(dialect: Dialect, name: Dimension): string {
  return (dialect === "2026" && dimension(name).in2026?.grouping) || name;
}

export function filterIn(dialect: Dialect, name: Dimension): string | null {
  const other = dialect === "2026" ? dimension(name).in2026?.filter : undefined;
  return other === undefined ? name : other;
}

/** Whether the two dialects have different names for the dimension, or different values for its filter. */
export function differsIn2026(name: Dimension, use: "grouping" | "filter"): boolean {
  const { in2026, in2026FiltersById } = dimension(name);
  return in2026?.[use] !== undefined || (use === "filter" && in2026FiltersById === true);
}

/** Whether the groups add up to the total. `grouping` is none or one dimension: for several the result may be wrong. */
export function addsUp(grouping: string): boolean {
  return !ENTRIES.get(grouping)?.overlaps;
}

export function memberNoun(grouping: string): string | undefined {
  return ENTRIES.get(grouping)?.member;
}

/** The total itself, then the dimensions in order of preference. */
export const TOTAL_GROUPINGS = ["none", ...TABLE.map(({ name }) => name).filter(addsUp)] as const;

export function groupingNoun(grouping: string): string {
  const entry = ENTRIES.get(grouping);
  return entry ? (entry.noun ?? entry.name.replaceAll("_", " ")) : grouping;
}

/** The features that the service's documentation names, whether a project used them or not. */
export const DOCUMENTED_FEATURES: readonly string[] = `
  alternatives callback callback_method channels custom_intent custom_intent_mode custom_topic custom_topic_mode detect_entities
  detect_language diarize dictation encoding extra filler_words intents keyterm keywords language measurements multichannel
  numerals paragraphs profanity_filter punctuate redact replace sample_rate search sentiment smart_format summarize topics
  utt_split utterances version
`
  .trim()
  .split(/\s+/);
