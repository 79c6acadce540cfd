// The pages of a dashboard on which all is well, except for the parts that a test sets.

import type { HealthState } from "../../../src/facts/health.ts";
import type { KeyStatus, RotationKeys } from "../../../src/facts/keys.ts";
import { NO_COUNTS } from "../../../src/usage/counts.ts";
import { framePage } from "../../../src/web/dashboard/frame.ts";
import { PAGE_CONTENT, type PageData } from "../../../src/web/dashboard/pages.ts";
import type { Page, Readiness } from "../../../src/web/page.ts";
import type { View } from "../../../src/web/url.ts";
import { makeAnswer, makeCoverage, makeOverview, PERIOD } from "../../facts/sample-facts.ts";
import { healthState, makeRun } from "../../health/sample-health-state.ts";
import { WELL } from "../test-monitor.ts";

const VIEW: View = { period: { ...PERIOD, name: "28d" }, project: undefined, pageParameters: {} };

const KEY_ID = "11111111-2222-3333-4444-555555555555";

/** What each page reads. */
export function pageData(): PageData {
  return {
    overview: makeOverview(),
    usage: { answer: makeAnswer(), change: undefined },
    run: {
      run: makeRun(),
      projectCount: 12,
      projects: [
        {
          ...{ project: "production", outcome: "failed", finishedAt: new Date("2026-03-10T01:15:40Z") },
          ...{ ...NO_COUNTS, requests: 12, planned: 12, complete: 10, failed: 2, error: "the service answered 503" },
        },
      ],
    },
    health: {
      coverage: makeCoverage(),
      runs: [makeRun()],
      keys: {
        rotations: [rotationKeys()],
        hasMore: false,
        events: [
          {
            ...{ at: new Date("2026-03-01T12:00:00Z"), rotation: "exporter", key: KEY_ID },
            ...{ event: "activated", actor: "worker node-1", reason: "every sink has it" },
          },
        ],
      },
    },
  };
}

type Frame = { readonly health?: Partial<HealthState>; readonly view?: Partial<View>; readonly readiness?: Readiness };

/** `data` replaces parts of pageData(). `frame` has what is around them: alerts, the chosen period and the worker's state. */
export function pageOf<P extends keyof PageData>(page: P, data: Partial<PageData[P]> = {}, frame: Frame = {}): Page {
  const health = healthState(frame.health);
  const view = { ...VIEW, ...frame.view };
  const content = PAGE_CONTENT[page]({ ...pageData()[page], ...data } as PageData[P], view, health);
  return framePage({ page, view, health, readiness: frame.readiness ?? WELL, ...content });
}

/** The visible text of a page, on one line. */
export function textOf({ body }: { readonly body: string }): string {
  const visible = body.replace(/^[\s\S]*<body>/, "").replaceAll(/<svg[\s\S]*?<\/svg>/g, "");
  return visible.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");
}

export function rotationKeys(part: Partial<RotationKeys> = {}): RotationKeys {
  return { rotation: "exporter", maxAgeDays: 30, keys: [keyLine()], ...part };
}

export function keyLine(part: Partial<KeyStatus> = {}): KeyStatus {
  return {
    ...{ rotation: "exporter", ledgerName: "exporter", isForMany: false },
    ...{ project: "production", projectId: "project-1", apiKeyId: KEY_ID, intentId: "a1b2c3" },
    ...{ state: "active", ageDays: 12, lastSeenInUse: "2026-03-09", dueForRemovalAt: null },
    ...{ comment: "usage exporter [a1b2c3]", note: null },
    ...part,
  };
}
