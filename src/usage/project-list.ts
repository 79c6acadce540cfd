// Decides what a list of projects, as the service answered it, changes in what is known of them. Pure: the moment is a parameter.

/** A project as the service lists it. */
export type ListedProject = { readonly id: string; readonly name: string };

/** A project that the service has listed at some time, as it is stored. */
export type KnownProject = ListedProject & {
  /** Which list it is in: that of a key. See `listOf` in config/config.ts. */
  readonly list: string;
  readonly firstSeenAt: Date;
  /** Since when it has its name. */
  readonly namedAt: Date;
  /** Since when it is missing from lists that are in doubt. */
  readonly missingSince: Date | undefined;
  /** When a list without it was believed; undefined while it is listed or in doubt. */
  readonly vanishedAt: Date | undefined;
};

export type ListChange = {
  readonly added: readonly ListedProject[];
  /** Those that had vanished and are listed again. */
  readonly returned: readonly ListedProject[];
  readonly renamed: readonly ListedProject[];
  readonly vanished: readonly KnownProject[];
  /** Those that are missing from a list in doubt: they count as listed until another list confirms it. */
  readonly waiting: readonly KnownProject[];
  /** Those that were waiting and are listed again. */
  readonly found: readonly KnownProject[];
};

/** A second list that lacks a project confirms the first one if it was read at least this much later. */
const CONFIRMED_MS = 60 * 60_000;

/**
 * A list without more than half of the projects that were listed before is in doubt: it may be cut, or be that of another key. Then
 * nothing vanishes and nothing is added until a list an hour or more later lacks the same projects, or a person confirms it.
 */
export function changeList(
  listed: readonly ListedProject[],
  known: readonly KnownProject[],
  now: Date,
  isConfirmed = false,
): ListChange {
  const names = new Map(listed.map(({ id, name }) => [id, name]));
  const byId = new Map(known.map((one) => [one.id, one]));
  const current = known.filter(({ vanishedAt }) => vanishedAt === undefined);
  const missing = current.filter(({ id }) => !names.has(id));
  const [gone, unconfirmed] = [missing.filter(isGone), missing.filter((one) => !isGone(one))];
  const isInDoubt = unconfirmed.length > 0 && missing.length * 2 > current.length;
  const hasVanished = ({ id }: ListedProject) => byId.get(id)?.vanishedAt !== undefined;

  function isGone({ missingSince }: KnownProject): boolean {
    return isConfirmed || (missingSince !== undefined && now.getTime() - missingSince.getTime() >= CONFIRMED_MS);
  }

  return {
    added: isInDoubt ? [] : listed.filter(({ id }) => !byId.has(id)),
    returned: isInDoubt ? [] : listed.filter(hasVanished),
    renamed: listed.filter((one) => byId.has(one.id) && !hasVanished(one) && byId.get(one.id)?.name !== one.name),
    vanished: isInDoubt ? gone : missing,
    waiting: isInDoubt ? unconfirmed : [],
    found: current.filter(({ id, missingSince }) => names.has(id) && missingSince !== undefined),
  };
}

/** What is known after the change. */
export function applyChange(
  list: string,
  known: readonly KnownProject[],
  { added, returned, renamed, vanished, waiting, found }: ListChange,
  now: Date,
): KnownProject[] {
  const changes = new Map<string, Partial<KnownProject>>([
    ...changesOf(renamed, ({ name }) => ({ name })),
    ...changesOf(vanished, () => ({ missingSince: undefined, vanishedAt: now })),
    ...changesOf(waiting, ({ missingSince = now }) => ({ missingSince })),
  ]);
  for (const { id } of found) changes.set(id, { ...changes.get(id), missingSince: undefined });
  for (const { id, name } of returned) changes.set(id, { name, vanishedAt: undefined });
  const unseen = { list, firstSeenAt: now, namedAt: now, missingSince: undefined, vanishedAt: undefined };
  return [
    ...known.map((one) => {
      const after = { ...one, ...changes.get(one.id) };
      return after.name === one.name ? after : { ...after, namedAt: now };
    }),
    ...added.map((one) => ({ ...one, ...unseen })),
  ];
}

function changesOf<Project extends ListedProject>(
  projects: readonly Project[],
  changeOf: (project: Project) => Partial<KnownProject>,
): [string, Partial<KnownProject>][] {
  return projects.map((project) => [project.id, changeOf(project)]);
}
