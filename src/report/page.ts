// A self-contained HTML page: no script, no requests, and a policy that forbids both.

import { createHash } from "node:crypto";
import { type Html, html, trustedHtml } from "./html.ts";
import { STYLE } from "./style.ts";

/** The body's headings begin at h3. */
export type Section = {
  /** Unique on the page, of letters and hyphens: the section's anchor. */
  readonly id: string;
  readonly title: string;
  readonly body: Html;
  /** How much of the width it takes on a wide screen, beside other sections; the whole width if left out. */
  readonly width?: "third" | "half" | "two-thirds";
  /** A link to more of it, beside the title. */
  readonly more?: Html;
  /** The title is not shown, because what is shown needs none; screen readers have it. */
  readonly quiet?: boolean;
};

export type PageOptions = {
  /** Of the browser's tab. */
  readonly title: string;
  /** Above the sections: the heading, and whether the page's numbers are complete. */
  readonly header: Html;
  readonly sections: readonly Section[];
  readonly footer: Html;
  /** Set for a page that the worker serves: its forms are submitted to the worker. A page in a file can't submit forms. */
  readonly served?: boolean;
  /** Added to the head of a served page: its script. */
  readonly head?: Html | undefined;
};

export const ADDING_UP_WARNING =
  "Days are UTC calendar days. Each grouping is the same usage counted again: figures of different groupings, and of different filters, are never to be added up.";

/** Without this link a browser would request an icon from the server, and report that the policy forbids it. */
const NO_ICON = html`<link rel="icon" href="data:,">
`;

/**
 * Allows only the page's own style sheet, and in a served page its icon, its forms, and scripts and requests of the worker. The worker
 * also sends it as a header.
 */
export function contentSecurityPolicy(served = false): string {
  const style = createHash("sha256").update(STYLE).digest("base64");
  const server = served
    ? "script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'"
    : "form-action 'none'";
  return `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; ${server}`;
}

/** The same options make the same bytes. */
export function htmlDocument(options: PageOptions): string {
  const text = documentHtml(options).toString();
  // Only a script reads the descriptions of the charts. A quotation mark in a text is escaped, so this can't be one.
  return options.served ? text : text.replaceAll(/ data-chart="[^"]*"/g, "");
}

function documentHtml({ title, header, sections, footer, served, head }: PageOptions): Html {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${trustedHtml(contentSecurityPolicy(served))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
${served ? NO_ICON : undefined}<title>${title}</title>
<style>${trustedHtml(STYLE)}</style>
${head}</head>
<body>
<header>
${header}
</header>
<main id="main">
${sections.map(sectionHtml)}
</main>
<footer>
${footer}
</footer>
</body>
</html>
`;
}

export function sectionLinks(sections: readonly Section[]): Html {
  return html`<nav class="sections" aria-label="Sections"><ul>${sections.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></nav>`;
}

function sectionHtml({ id, title, body, width, more, quiet }: Section): Html {
  const heading = html`<h2 id="${id}-title"${quiet ? html` class="unseen"` : undefined}>${title}</h2>`;
  return html`<section id="${id}" aria-labelledby="${id}-title"${width && html` class="${width}"`}>
${more ? html`<div class="title">${heading}${more}</div>` : heading}
${body}
</section>
`;
}
