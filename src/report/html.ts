// Makes HTML in which a text can't become markup: everything that is filled in is escaped, unless it is HTML already. Pure.

import { withEntities } from "../entities.ts";

/** A piece of HTML that is safe to fill into another one's content. */
export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

export type Filling = Html | string | number | readonly Filling[] | undefined;

/** Fill in content, and values of attributes in double quotes; nowhere else, as in `<style>` other rules hold. */
export function html(parts: TemplateStringsArray, ...fillings: readonly Filling[]): Html {
  return new Html(parts.map((part, i) => `${part}${rendered(fillings[i])}`).join(""));
}

/** Not for texts from outside: they go in as they are. */
export function trustedHtml(text: string): Html {
  return new Html(text);
}

function rendered(filling: Filling): string {
  if (filling === undefined) return "";
  if (filling instanceof Html) return filling.toString();
  if (typeof filling === "object") return filling.map(rendered).join("");
  return escaped(String(filling));
}

function escaped(text: string): string {
  // A control character can't stand in HTML: a browser would drop or change it.
  return withEntities(text).replaceAll(/[\p{Cc}\p{Cs}]/gu, (char) => (/[\t\n]/.test(char) ? char : "\ufffd"));
}
