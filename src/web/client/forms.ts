// Submits a form when a person has chosen something in one of its lists, so that nobody has to look for the button.

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
  focusChosen();
}

function focusChosen(): void {
  const name = sessionStorage.getItem(FOCUS_KEY);
  if (name === null) return;
  sessionStorage.removeItem(FOCUS_KEY);
  document.querySelector<HTMLElement>(`.toolbar select[name="${CSS.escape(name)}"]`)?.focus({ preventScroll: true });
}
