// The names that the service knows for a project: those that Get Fields lists now or ever listed, and those whose filter was seen to
// change the numbers.

import { memoizeAsync } from "../async.ts";
import { type ListedName, listedNames, storeListedNames } from "../db/usage/series.ts";
import { type BilledFields, fetchBilledFields, fetchFields, type ListedFields } from "../service/fields.ts";
import { BILLING_DIMENSIONS, type Dimension, type Project } from "../usage/series.ts";
import type { ServiceContext } from "./export-context.ts";

type NameDeps = Pick<ServiceContext, "app" | "db" | "service" | "keys">;

type FoundNames = {
  /** Empty if the name is not known. For a model: all models with that name, or the one with that id. */
  readonly matches: readonly ListedName[];
  /** Known names of the same kind, to suggest what was meant. */
  readonly others: readonly string[];
  /** False if the service lists no names of this kind: then an unknown name proves nothing. */
  readonly isListed: boolean;
};

export type KnownNames = {
  readonly find: (project: Project, kind: ListedName["kind"], name: string) => Promise<FoundNames>;
  /** As `find`, for a value of a dimension of billing. Nothing of it is stored: the service lists all values that amounts have. */
  readonly findBilled: (project: Project, dimension: Dimension, value: string) => Promise<FoundNames>;
  /** Records that the service knows the name: a filter by it changed the numbers. */
  readonly prove: (project: Project, kind: ListedName["kind"], name: string) => Promise<void>;
};

/** Requests the names of each project once. A failed request fails only the callers that wait for it. */
export function openKnownNames({ app, db, service, keys }: NameDeps): KnownNames {
  const listed = memoizeAsync<ListedFields | undefined>();
  const stored = memoizeAsync<readonly ListedName[]>();
  const billed = memoizeAsync<BilledFields | undefined>();
  const proved = new Map<string, ListedName[]>();

  async function earlierNames(project: Project): Promise<readonly ListedName[]> {
    const known = await stored(project.id, async () => (db ? listedNames(db, project.id) : []));
    return [...known, ...(proved.get(project.id) ?? [])];
  }

  async function askFields(project: Project): Promise<ListedFields | undefined> {
    const fields = await keys.use(project, (key) => fetchFields(service, project.id, key, app.signal));
    if (!fields?.features) {
      app.log.warn(
        { project: project.name },
        "the service does not list its features: whether it knows a feature shows only in the numbers",
      );
    }
    if (db && fields) {
      // There may be many tags, and new ones every day, so only those that a filter names are stored.
      const names = [...listedNamesOf(fields, "feature"), ...listedNamesOf(fields, "model")];
      await storeListedNames(db, project.id, names);
    }
    return fields;
  }

  return {
    async find(project, kind, name) {
      const earlier = (await earlierNames(project)).filter((one) => one.kind === kind);
      const known = earlier.filter((one) => isNamed(one, name));
      // Each version of a model has its own id, and a filter means the version in use now, so the models are always requested.
      if (known.length > 0 && kind !== "model") return { matches: known, others: [], isListed: true };
      const fields = await listed(project.id, () => askFields(project));
      const current = listedNamesOf(fields ?? {}, kind);
      const matches = current.filter((one) => isNamed(one, name));
      if (db && kind === "tag") await storeListedNames(db, project.id, matches);
      return {
        matches: matches.length > 0 ? matches : known,
        others: [...current, ...earlier].map((one) => one.name),
        isListed: fields?.[`${kind}s`] !== undefined,
      };
    },
    async findBilled(project, dimension, value) {
      const fields = await billed(project.id, () =>
        keys.use(project, (key) => fetchBilledFields(service, project.id, key, app.signal)),
      );
      const values = fields?.[BILLING_DIMENSIONS.find((one) => one === dimension) ?? "tags"];
      const matches = values?.includes(value) ? [{ kind: "tag" as const, name: value, modelId: "" }] : [];
      return { matches, others: values ?? [], isListed: values !== undefined };
    },
    async prove(project, kind, name) {
      const names: ListedName[] = [{ kind, name, modelId: "" }];
      proved.set(project.id, [...(proved.get(project.id) ?? []), ...names]);
      if (db) await storeListedNames(db, project.id, names);
    },
  };
}

/** The service's own example lists the tag "dev" as "tag=dev". */
function isNamed({ kind, name, modelId }: ListedName, wanted: string): boolean {
  if (name === wanted) return true;
  return (kind === "tag" && name === `tag=${wanted}`) || (kind === "model" && modelId === wanted);
}

function listedNamesOf(fields: Partial<ListedFields>, kind: ListedName["kind"]): ListedName[] {
  if (kind === "model") return (fields.models ?? []).map(({ name, id }) => ({ kind, name, modelId: id ?? "" }));
  return (fields[`${kind}s`] ?? []).map((name) => ({ kind, name, modelId: "" }));
}
