// Texts that stand for several projects: patterns of names, in which * is any text, and "{id}" in paths and commands. Pure.

export function isPattern(text: string): boolean {
  return text.includes("*");
}

/** Whether the whole text fits. The time it takes does not grow with the number of stars, as that of a regular expression may. */
export function matchesPattern(pattern: string, text: string): boolean {
  const [first = "", ...others] = pattern.split("*");
  const last = others.pop();
  if (last === undefined) return text === pattern;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let at = first.length;
  for (const part of others) {
    const found = text.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return at <= text.length - last.length;
}

type NamedProject = { readonly id: string; readonly name: string; readonly isDiscovered?: true };

/**
 * The projects with these names, and those that a pattern among them fits, each once. A discovered project may have any name, also one like
 * a pattern: it is found by patterns alone, so that no name at the service takes a pattern away from the other projects.
 */
export function projectsNamed(
  projects: readonly NamedProject[],
  names: readonly string[],
): { readonly id: string; readonly name: string }[] {
  const byName = new Map(
    projects.filter(({ isDiscovered }) => !isDiscovered).map((project) => [project.name, project]),
  );
  const named = names.flatMap((name) => {
    const exact = byName.get(name);
    if (exact || !isPattern(name)) return exact ?? [];
    return projects.filter((project) => matchesPattern(name, project.name));
  });
  return [...new Map(named.map(({ id, name }) => [id, { id, name }])).values()];
}

// The placeholder for the id of a project, in the path of a file or in an argument. An id has no slash and no dot.

const ID = "{id}";

export function hasId(text: string): boolean {
  return text.includes(ID);
}

export function putId(text: string, id: string): string {
  return text.replaceAll(ID, id);
}

/** What is wrong with a text that may have the placeholder: another word between braces. */
export function placeholderProblem(text: string): string | undefined {
  const unknown = (text.match(/\{[A-Za-z]+\}/g) ?? []).find((word) => word !== ID);
  return unknown && `expected ${ID}, which stands for the project's id, and no other placeholder; got ${unknown}`;
}
