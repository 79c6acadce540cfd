// What runs in the browser: everything works without it, except what it adds here.

import { drawCharts } from "./charts.ts";
import { listenForChoices, listenForCopying, prepareCopying } from "./controls.ts";
import { ADDED, element } from "./element.ts";
import { keepUpToDate } from "./live.ts";
import { listenForSorting, prepareTables } from "./tables.ts";

const announcements = element("p", { class: "unseen", role: "status", [ADDED]: "" });
document.body.append(announcements);
const say = (text: string) => announcements.replaceChildren(text);

const prepare = (page: Document) => {
  prepareTables(page);
  prepareCopying(page);
};
prepare(document);
drawCharts();
listenForSorting();
listenForChoices();
listenForCopying(say);
if (document.querySelector('meta[name="live"]')) keepUpToDate({ prepare, changed: drawCharts, say });
