// A self-contained HTML page, and the policy that allows what it has and nothing else. Pure.

import { hash } from "node:crypto";
import { type Html, html, trustedHtml } from "./html.ts";
import { STYLE } from "./style.ts";

/** The body's headings begin at h3. */
export type Section = {
  /** Unique on the page, of letters and hyphens: the section's anchor. */
  readonly id: string;
  readonly title: string;
  readonly body: Html;
  /** How much of the width it takes on a wide screen, beside other sections; the whole width if left out. */
  readonly width?: "quarter" | "third" | "two-thirds" | undefined;
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
  /** The script of a page in a file. */
  readonly script?: string;
};

export const ADDING_UP_WARNING =
  "Days are UTC calendar days. Each grouping is the same usage counted again: figures of different groupings, and of different filters, are never to be added up.";

/** Without this link a browser would request an icon from the server, and report that the policy forbids it. */
const NO_ICON = html`<link rel="icon" href="data:,">
`;

/**
 * Allows only the page's own style sheet, and in a served page its icon, its forms, and scripts and requests of the worker; in a file its
 * script. The worker also sends it as a header.
 */
export function contentSecurityPolicy({ served, script }: Pick<PageOptions, "served" | "script">): string {
  const server = served
    ? "script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'"
    : `script-src '${hashOf(inlineScript(script))}'; form-action 'none'`;
  return `default-src 'none'; style-src '${hashOf(STYLE)}'; base-uri 'none'; ${server}`;
}

function hashOf(text: string): string {
  return `sha256-${hash("sha256", text, "base64")}`;
}

/** Nothing in it ends the element. */
function inlineScript(script = ""): string {
  return script.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
}

/** The same options make the same bytes. */
export function htmlDocument({ title, header, sections, footer, served = false, head, script }: PageOptions): string {
  const inline =
    script === undefined
      ? undefined
      : html`<script type="module">${trustedHtml(inlineScript(script))}</script>
`;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${trustedHtml(contentSecurityPolicy({ served, ...(script !== undefined && { script }) }))}">
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
${inline}</body>
</html>
`.toString();
}

function sectionHtml({ id, title, body, width, more, quiet }: Section): Html {
  const heading = html`<h2 id="${id}-title"${quiet ? html` class="unseen"` : undefined}>${title}</h2>`;
  return html`<section id="${id}" aria-labelledby="${id}-title"${width && html` class="${width}"`}>
${more ? html`<div class="title">${heading}${more}</div>` : heading}
${body}
</section>
`;
}
