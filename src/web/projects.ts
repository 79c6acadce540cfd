// The projects of the health state, how an address names one, and finding one by a part of its name or identifier. Pure.

export type NamedProject = { readonly id: string; readonly name: string };

/**
 * The projects whose name or identifier is the text, then those of which one begins with it, then those of which one contains it; each by
 * name. Upper and lower case are the same. Nothing in the text has a special meaning.
 */
export function findProjects<Project extends NamedProject>(
  projects: readonly Project[],
  text: string,
): readonly Project[] {
  const wanted = text.trim().toLowerCase();
  return projects
    .flatMap((project) => {
      const rank = rankOf(project, wanted);
      return rank === undefined ? [] : [{ project, rank }];
    })
    .sort((a, b) => a.rank - b.rank || compare(a.project.name, b.project.name) || compare(a.project.id, b.project.id))
    .map(({ project }) => project);
}

function rankOf({ id, name }: NamedProject, wanted: string): number | undefined {
  const texts = [name.toLowerCase(), id.toLowerCase()];
  if (texts.includes(wanted)) return 0;
  if (texts.some((text) => text.startsWith(wanted))) return 1;
  return texts.some((text) => text.includes(wanted)) ? 2 : undefined;
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}

type KnownProject = NamedProject & {
  /** Whether it is still configured. */
  readonly isExported: boolean;
};

/** A project and source of the health state. */
type ProjectLine = { readonly projectId: string; readonly project: string; readonly series: number };

/** Each project once: the health state has it for usage and for billing. */
export function knownProjects(lines: readonly ProjectLine[]): readonly KnownProject[] {
  const known = new Map<string, KnownProject>();
  for (const { projectId: id, project: name, series } of lines) {
    const other = known.get(id);
    known.set(id, { id, name: other?.name ?? name, isExported: series > 0 || (other?.isExported ?? false) });
  }
  return [...known.values()];
}

/** What the address says for a project: its name, or its identifier if the name is blank or that of several projects. */
export function projectValue({ id, name }: NamedProject, known: readonly NamedProject[]): string {
  return name !== "" && known.every((one) => one.id === id || one.name !== name) ? name : id;
}
