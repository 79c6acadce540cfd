// Copies texts of the page: the statement of a table, an exact amount.

import { element } from "./element.ts";

const SAID_MS = 2_000;

/** Shows the buttons, which do nothing without the script. `page` may be one that is not shown yet. */
export function prepareCopying(page: Document): void {
  for (const button of page.querySelectorAll<HTMLElement>("button[data-copy]")) button.hidden = false;
  for (const amount of page.querySelectorAll<HTMLElement>(".figures data[value]")) {
    amount.tabIndex = 0;
    amount.setAttribute("role", "button");
    amount.setAttribute("aria-label", `${amount.textContent}: copy ${amount.title || amount.getAttribute("value")}`);
  }
}

export function listenForCopying(say: (text: string) => void): void {
  const copyAt = async (target: EventTarget | null) => {
    const found = target instanceof Element ? target.closest<HTMLElement>("button[data-copy], data[value]") : null;
    const text = found?.dataset.copy ?? found?.getAttribute("value");
    if (!found || text === null || text === undefined) return false;
    const isCopied = await copy(text);
    say(isCopied ? (found.matches("data") ? `Copied ${text}` : "Copied") : "The browser does not allow copying");
    if (!isCopied) return true;
    found.setAttribute("data-copied", "");
    setTimeout(() => found.removeAttribute("data-copied"), SAID_MS);
    return true;
  };
  document.addEventListener("click", ({ target }) => void copyAt(target));
  document.addEventListener("keydown", (event) => {
    if ((event.key !== "Enter" && event.key !== " ") || !(event.target as Element).matches("data[value]")) return;
    event.preventDefault();
    void copyAt(event.target);
  });
}

/** Only a page from this machine, or over HTTPS, may use the clipboard; elsewhere a selection is copied. */
async function copy(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {}
  }
  const area = element("textarea", { class: "unseen", readonly: "" }, text);
  const focused = document.activeElement;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
