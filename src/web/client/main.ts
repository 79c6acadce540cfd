// What runs in the browser. Without it, tables stand in place of charts, and nothing can be copied.

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

/** Fields that are left empty would only make the URL longer. */
function leaveOutEmptyFields(): void {
  document.addEventListener("formdata", ({ formData }) => {
    for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
  });
}

/** A page that stays open would show old numbers the next day. It stays as it is while the worker does not answer. */
function reloadEachHour(): void {
  if (location.protocol === "file:") return;
  setInterval(async () => {
    const answer = await fetch(location.href, { method: "HEAD" }).catch(() => undefined);
    if (answer?.ok) location.reload();
  }, RELOAD_MS);
}

drawCharts();
prepareCopying();
leaveOutEmptyFields();
reloadEachHour();
