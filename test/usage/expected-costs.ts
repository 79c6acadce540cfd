// What usage costs by a list of configured prices: the tests' own calculation in whole numbers, which shares no code with the product.

export type ConfiguredPrice = {
  readonly metric: string;
  readonly model: string | readonly string[];
  readonly endpoint?: string;
  readonly method?: string;
  readonly currency: string;
  readonly price: string;
  readonly per?: number | string;
  readonly from: string;
  readonly until?: string;
  readonly tiers?: readonly { readonly above: string; readonly price: string }[];
};

/** The amount of one metric in one row of an answer that is grouped by model, or not grouped at all. */
export type Used = {
  readonly project: string;
  readonly day: string;
  readonly grouping: "model" | "none";
  readonly endpoint?: string;
  readonly method?: string;
  /** Null for no value. */
  readonly models: readonly string[] | null;
  readonly metric: string;
  readonly quantity: string;
};

export type Cost = {
  readonly project: string;
  readonly day: string;
  readonly model: string | null;
  readonly endpoint: string | null;
  readonly method: string | null;
  readonly metric: string;
  readonly status: string;
  readonly currency: string | null;
  readonly quantity: string;
  readonly price: string | null;
  readonly amount: string | null;
  readonly tier: string | null;
};

const DECIMALS = 80;

/** The number as an integer, in units of 10^-DECIMALS. */
export function exact(text: string): bigint {
  const [whole = "", fraction = ""] = text.split(".");
  if (fraction.length > DECIMALS) throw new Error(`more than ${DECIMALS} decimals: ${text}`);
  return BigInt(whole + fraction.padEnd(DECIMALS, "0"));
}

/** The number as text, without superfluous zeros. `decimals` is how many of the digits are decimals. */
export function decimal(value: bigint, decimals = DECIMALS): string {
  const digits = String(value < 0n ? -value : value).padStart(decimals + 1, "0");
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return `${value < 0n ? "-" : ""}${digits.slice(0, digits.length - decimals)}${fraction && `.${fraction}`}`;
}

function product(a: bigint, b: bigint): string {
  return decimal(a * b, 2 * DECIMALS);
}

/** Priced usage, then what no price covers: of each model, and in all on days that were not read by model. */
export function expectedCosts(used: readonly Used[], prices: readonly ConfiguredPrice[]): readonly Cost[] {
  if (prices.length === 0) return [];
  const sorted = used.filter(({ quantity }) => exact(quantity) > 0n).toSorted(inOrderOfTiers);
  const byModel = sorted.filter(({ grouping }) => grouping === "model");
  const spent = new Map<string, bigint>();
  const priced = byModel.flatMap((row) => {
    const price = priceFor(row, prices);
    return price ? [{ row, costs: costsOf(row, price, spent) }] : [];
  });
  const isPriced = (fits: (row: Used) => boolean) => priced.some(({ row }) => fits(row));
  const pricedQuantity = (fits: (row: Used) => boolean) =>
    priced.filter(({ row }) => fits(row)).reduce((sum, { row }) => sum + exact(row.quantity), 0n);

  const remaining = byModel.filter(isUnfiltered).flatMap((row) => {
    const isSameModel = (other: Used) =>
      other.project === row.project && other.day === row.day && modelText(other) === modelText(row);
    const isSameUsage = (other: Used) => isSameModel(other) && other.metric === row.metric;
    const rest = exact(row.quantity) - pricedQuantity(isSameUsage);
    const isExcusing = (other: Used) => isSameModel(other) && excuses(other.metric, row.metric);
    const status = !isPriced(isSameUsage) && isPriced(isExcusing) ? "other_metric" : "unpriced";
    return rest > 0n ? [unpriced(row, rest, status)] : [];
  });
  const totals = sorted
    .filter(({ grouping }) => grouping === "none")
    .flatMap((row) => {
      const isSameDay = (other: Used) => other.project === row.project && other.day === row.day;
      // A day that was read by model has no row of its total, even if the service said zero for each model.
      if (used.some((other) => other.grouping === "model" && isSameDay(other) && isUnfiltered(other))) return [];
      const rest = exact(row.quantity) - pricedQuantity((other) => isSameDay(other) && other.metric === row.metric);
      return rest > 0n ? [unpriced(row, rest, "unpriced")] : [];
    });
  return [...priced.flatMap(({ costs }) => costs), ...remaining, ...totals];
}

/** Usage fills the tiers of a price in the order of days, projects and models. Usage without a model comes last. */
function inOrderOfTiers(a: Used, b: Used): number {
  const key = (row: Used) => [row.day, row.project, modelText(row) ?? "\uffff"].join("\n");
  return key(a) < key(b) ? -1 : 1;
}

/** Whether usage with a price for the one metric needs none for the other: both measure the same. */
function excuses(priced: string, other: string): boolean {
  return other === "requests" || (priced.endsWith("hours") && other.endsWith("hours"));
}

function isUnfiltered({ endpoint, method }: Used): boolean {
  return endpoint === undefined && method === undefined;
}

function modelText({ models }: Used): string | null {
  return models && models.length > 1 ? JSON.stringify(models.toSorted()) : (models?.[0] ?? null);
}

function priceFor(row: Used, prices: readonly ConfiguredPrice[]): ConfiguredPrice | undefined {
  const fitting = prices.filter(
    (price) =>
      price.metric === row.metric &&
      price.endpoint === row.endpoint &&
      price.method === row.method &&
      price.from <= row.day &&
      covers(price.model, row.models),
  );
  // Prices of the same usage follow each other.
  const newest = fitting.toSorted((a, b) => (a.from < b.from ? 1 : -1))[0];
  return newest && (newest.until ?? row.day) >= row.day ? newest : undefined;
}

function covers(model: string | readonly string[], used: readonly string[] | null): boolean {
  if (model === "*") return true;
  if (used === null) return false;
  if (typeof model !== "string") return JSON.stringify(model.toSorted()) === JSON.stringify(used.toSorted());
  if (model.endsWith("*")) return used.every((one) => one.startsWith(model.slice(0, -1)));
  return used.length === 1 && used[0] === model;
}

/** One cost for each tier that the row's quantity falls into. `spent` has the month's quantities before this row, by price. */
function costsOf(row: Used, price: ConfiguredPrice, spent: Map<string, bigint>): Cost[] {
  const { metric, model, endpoint, method } = price;
  const key = JSON.stringify([metric, model, endpoint, method, row.day.slice(0, 7)]);
  const before = spent.get(key) ?? 0n;
  const after = before + exact(row.quantity);
  spent.set(key, after);
  const tiers = [{ above: "0", price: price.price }, ...(price.tiers ?? [])];
  return tiers.flatMap((tier, i) => {
    const from = max(before, exact(tier.above));
    const next = tiers[i + 1];
    const to = next && exact(next.above) < after ? exact(next.above) : after;
    if (to <= from) return [];
    const unitPrice = priceOfUnit(tier.price, price.per ?? 1);
    return [
      {
        ...sourceOf(row),
        ...{ endpoint: endpoint ?? null, method: method ?? null, status: "priced", currency: price.currency },
        ...{ quantity: decimal(to - from), price: decimal(unitPrice), amount: product(to - from, unitPrice) },
        tier: decimal(exact(tier.above)),
      },
    ];
  });
}

function priceOfUnit(price: string, per: number | string): bigint {
  if (per === "minute") return exact(price) * 60n;
  if (per === "second") return exact(price) * 3600n;
  return per === "hour" ? exact(price) : exact(price) / BigInt(per);
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}

function sourceOf(row: Used) {
  return { project: row.project, day: row.day, model: modelText(row), metric: row.metric };
}

function unpriced(row: Used, quantity: bigint, status: string): Cost {
  const none = { endpoint: null, method: null, currency: null, price: null, amount: null, tier: null };
  return { ...sourceOf(row), ...none, status, quantity: decimal(quantity) };
}
