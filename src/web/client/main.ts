// The script of the pages. Where it does not run, a page has tables in place of charts, and no buttons to copy.

import { drawCharts, element } from "./charts.ts";

const COPIED_MS = 2_000;
const RELOAD_MS = 3_600_000;

/** Only a page from this machine, or over HTTPS, may use the clipboard: elsewhere the buttons stay hidden. */
function prepareCopying(): void {
  if (navigator.clipboard === undefined) return;
  const announcements = element("p", { class: "unseen", role: "status" });
  document.body.append(announcements);
  for (const button of document.querySelectorAll<HTMLElement>("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        const { copy, copyLink = "" } = button.dataset;
        await navigator.clipboard.writeText(copy ?? new URL(copyLink, location.href).href);
      } catch {
        return announcements.replaceChildren("The browser does not allow copying");
      }
      announcements.replaceChildren("Copied");
      button.setAttribute("data-copied", "");
      setTimeout(() => button.removeAttribute("data-copied"), COPIED_MS);
    });
  }
}

drawCharts();
prepareCopying();
// A page that stays open would show old numbers the next day.
if (location.protocol !== "file:") setTimeout(() => location.reload(), RELOAD_MS);
