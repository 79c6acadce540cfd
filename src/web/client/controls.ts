// The buttons that copy a text of the page, and forms that are submitted by a choice, so that nobody has to look for the button.

const SAID_MS = 2_000;

/** Shows the buttons. Only a page from this machine, or over HTTPS, may use the clipboard. `page` may be one that is not shown yet. */
export function prepareCopying(page: Document): void {
  if (navigator.clipboard === undefined) return;
  for (const button of page.querySelectorAll<HTMLElement>("button[data-copy]")) button.hidden = false;
}

export function listenForCopying(say: (text: string) => void): void {
  document.addEventListener("click", async ({ target }) => {
    const button = target instanceof Element ? target.closest<HTMLElement>("button[data-copy]") : null;
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy ?? "");
    } catch {
      return say("The browser does not allow copying");
    }
    say("Copied");
    button.setAttribute("data-copied", "");
    setTimeout(() => button.removeAttribute("data-copied"), SAID_MS);
  });
}

/** Of the list that was chosen from. The next page gives it the focus, as otherwise a keyboard would begin at the top again. */
const FOCUS_KEY = "usage-export-chosen";

export function listenForChoices(): void {
  // With a closed list each arrow key is a change, and a person may want the entry after the next. Such a choice is submitted by the button.
  let key: string | undefined;
  document.addEventListener("keydown", (event) => {
    key = event.key;
  });
  document.addEventListener("pointerdown", () => {
    key = undefined;
  });
  document.addEventListener("change", ({ target }) => {
    if (!(target instanceof HTMLSelectElement) || (key !== undefined && key !== "Enter")) return;
    sessionStorage.setItem(FOCUS_KEY, target.name);
    target.form?.requestSubmit();
  });
  // Fields that are left empty would only make the URL longer.
  document.addEventListener("formdata", ({ formData }) => {
    for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
  });
  // A browser that keeps the page for the back button also keeps what was chosen, which is the state of the next page.
  window.addEventListener("pageshow", ({ persisted }) => {
    if (persisted) for (const form of document.forms) form.reset();
  });
  const chosen = sessionStorage.getItem(FOCUS_KEY);
  if (chosen === null) return;
  sessionStorage.removeItem(FOCUS_KEY);
  document.querySelector<HTMLElement>(`.toolbar select[name="${CSS.escape(chosen)}"]`)?.focus({ preventScroll: true });
}
