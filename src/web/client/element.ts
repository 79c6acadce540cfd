// Makes elements of the page. Texts are set as text, so that none becomes markup.

/** Marks what the script adds to a page: the server's page does not have it, and a renewal keeps it. */
export const ADDED = "data-added";

type Attributes = Readonly<Record<string, string | undefined>>;

export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
