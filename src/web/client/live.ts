// Keeps the page up to date: asks for it again while somebody sees it, and puts what has changed in its place without losing the focus,
// the scroll position or what is folded out. Says when the worker does not answer.

import { Idiomorph } from "idiomorph";
import { ADDED, element } from "./element.ts";

/** From the first to the longest wait, while nothing changes. After failures it waits longer. */
const WAIT_MS = { first: 15_000, unchanged: 60_000, failed: 300_000 };
const GROWTH = 1.5;
const ANSWER_MS_MAX = 15_000;

type Answer =
  | { readonly kind: "page"; readonly text: string; readonly tag: string | undefined }
  | { readonly kind: "unchanged"; readonly asOf: string | undefined }
  | { readonly kind: "failed"; readonly reason: string; readonly text?: string };

export type LiveDeps = {
  /** Prepares a page that is not shown yet, as the page that is shown was. */
  readonly prepare: (page: Document) => void;
  /** Called when the page has changed. */
  readonly changed: () => void;
  readonly say: (text: string) => void;
};

export function keepUpToDate({ prepare, changed, say }: LiveDeps): void {
  const note = element("p", { class: "live", role: "status", [ADDED]: "" });
  document.querySelector("main")?.before(note);
  let tag: string | undefined;
  let waitMs = WAIT_MS.first;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let answeredAt = new Date();
  let isAsking = false;

  async function ask(): Promise<void> {
    if (isAsking) return;
    isAsking = true;
    const answer = await askFor(location.href, tag);
    isAsking = false;
    if (answer.kind === "failed") {
      waitMs = Math.min(waitMs * 2, WAIT_MS.failed);
      const text = `${answer.reason} What is shown is as of ${answeredAt.toISOString().slice(11, 19)} UTC.`;
      if (note.textContent !== text) note.replaceChildren(text);
      note.classList.add("stale");
      // What is shown is then not the page of this tag.
      if (sayNewVerdict(() => replaceVerdict(answer.text ?? ""))) tag = undefined;
    } else {
      answeredAt = new Date();
      note.replaceChildren();
      note.classList.remove("stale");
      waitMs =
        answer.kind === "page" ? WAIT_MS.first : Math.min(Math.max(waitMs, WAIT_MS.first) * GROWTH, WAIT_MS.unchanged);
      if (answer.kind === "page") {
        tag = answer.tag;
        sayNewVerdict(() => replacePage(answer.text, prepare));
        changed();
      } else if (answer.asOf !== undefined) {
        document.querySelector("#as-of")?.replaceChildren(answer.asOf);
      }
    }
    plan();
  }

  function sayNewVerdict<Result>(change: () => Result): Result {
    const before = verdict();
    const result = change();
    if (verdict() !== before) say(verdict());
    return result;
  }

  function plan(): void {
    clearTimeout(timer);
    if (document.visibilityState === "visible") timer = setTimeout(ask, waitMs);
  }

  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState !== "visible") return clearTimeout(timer);
    const isOld = Date.now() - answeredAt.getTime() >= WAIT_MS.first;
    if (isOld) void ask();
    else plan();
  });
  plan();
}

async function askFor(url: string, tag: string | undefined): Promise<Answer> {
  try {
    const response = await fetch(url, {
      cache: "no-store",
      headers: tag === undefined ? {} : { "if-none-match": tag },
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    if (response.status === 304) return { kind: "unchanged", asOf: response.headers.get("x-as-of") || undefined };
    const text = await response.text();
    if (!response.ok)
      return { kind: "failed", reason: `The worker answers that it can't show this now (${response.status}).`, text };
    return { kind: "page", text, tag: response.headers.get("etag") ?? undefined };
  } catch {
    return { kind: "failed", reason: "The worker does not answer." };
  }
}

/** Its first words: a screen reader reads them out when they change. */
function verdict(): string {
  return (document.querySelector("#verdict strong") ?? document.querySelector("h1"))?.textContent?.trim() ?? "";
}

const MORPH_INSIDE = {
  morphStyle: "innerHTML",
  callbacks: {
    beforeNodeRemoved: (node: Node) => !isAdded(node),
    beforeNodeMorphed: (node: Node) => !isAdded(node) && !isBeingFilled(node),
    beforeAttributeUpdated: (name: string, node: Element) => !isKept(name, node),
  },
} as const;

/** A page whose content could not be read has a verdict all the same. Returns false if there is none. */
function replaceVerdict(text: string): boolean {
  const page = new DOMParser().parseFromString(text, "text/html");
  const [shown, newer] = [document, page].map((one) => one.querySelector("#verdict"));
  if (!newer || !shown) return false;
  document.title = page.title;
  void Idiomorph.morph(shown, newer.innerHTML, MORPH_INSIDE);
  return true;
}

function replacePage(text: string, prepare: (page: Document) => void): void {
  const page = new DOMParser().parseFromString(text, "text/html");
  prepare(page);
  document.title = page.title;
  // Given the body itself, it would put that into the body as another element, and none of the old ones would stay.
  void Idiomorph.morph(document.body, [...page.body.childNodes], MORPH_INSIDE);
}

function isAdded(node: Node): boolean {
  return node instanceof Element && node.hasAttribute(ADDED);
}

/** What a person has entered in a form stays. */
function isBeingFilled(node: Node): boolean {
  if (node instanceof HTMLInputElement) return node.value !== node.defaultValue || node === document.activeElement;
  return node instanceof HTMLSelectElement && node === document.activeElement;
}

/** What a person opened stays open. */
function isKept(name: string, node: Element): boolean {
  return (name === "open" && node instanceof HTMLDetailsElement) || name === "data-copied";
}
