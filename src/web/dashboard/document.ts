// A self-contained HTML page, and the policy that allows what it has and nothing else.

import { hash } from "node:crypto";
import { type Html, html, trustedHtml } from "../../show/html.ts";
import { STYLE } from "../../show/style.ts";
import { scriptPath } from "../assets.ts";
import type { Page } from "../page.ts";

/** A part of a page. The headings in its body begin at h3. */
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

type DocumentOptions = {
  /** The title of the browser's tab. */
  readonly title: string;
  /** Above the sections: the heading, and whether the page's numbers are complete. */
  readonly header: Html;
  readonly sections: readonly Section[];
};

export const ADDING_UP_WARNING =
  "Days are calendar days in UTC. Usage by model, by API key and by tags is the same usage, split in different ways: never add one to another.";

/** A page as the worker serves it, with the content security policy as a header. */
export function servedPage(
  options: DocumentOptions,
  { status = 200, headers }: { readonly status?: number; readonly headers?: Page["headers"] } = {},
): Page {
  const policy = "script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'";
  const head = html`<script type="module" src="${scriptPath()}"></script>\n`;
  return {
    status,
    contentType: "text/html; charset=utf-8",
    body: documentText(options, head, html`<p>${ADDING_UP_WARNING}</p>`),
    headers: { "content-security-policy": `${STYLE_POLICY}; ${policy}`, ...headers },
  };
}

/** The report as one file, with script and policy in it. The same options make the same bytes. */
export function fileText(options: DocumentOptions, footer: Html, script: string): string {
  // Escaped, so that nothing in the script ends its element.
  const inline = script.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  const policy = `${STYLE_POLICY}; script-src '${hashOf(inline)}'; img-src data:; form-action 'none'`;
  const head = html`<meta http-equiv="Content-Security-Policy" content="${trustedHtml(policy)}">\n`;
  return documentText(options, head, html`${footer}<script type="module">${trustedHtml(inline)}</script>`);
}

function hashOf(text: string): string {
  return `sha256-${hash("sha256", text, "base64")}`;
}

/** Allows only the page's own style sheet. */
const STYLE_POLICY = `default-src 'none'; style-src '${hashOf(STYLE)}'; base-uri 'none'`;

/** The icon is an empty one, because a browser would otherwise request one from the server. */
function documentText({ title, header, sections }: DocumentOptions, head: Html, footer: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
${head}<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>${title}</title>
<style>${trustedHtml(STYLE)}</style>
</head>
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
`.toString();
}

function sectionHtml({ id, title, body, width, more, quiet }: Section): Html {
  const heading = html`<h2 id="${id}-title"${quiet && html` class="unseen"`}>${title}</h2>`;
  return html`<section id="${id}" aria-labelledby="${id}-title"${width && html` class="${width}"`}>
${more ? html`<div class="title">${heading}${more}</div>` : heading}
${body}
</section>\n`;
}
