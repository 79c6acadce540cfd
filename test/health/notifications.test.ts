// Which notifications follow from the conditions and from what was sent before.

import { expect, test } from "vitest";
import { type HealthFacts, TRAITS } from "../../src/facts/conditions.ts";
import { type NotificationState, notificationsOf, sanitizeText, senderSuffix } from "../../src/show/notification.ts";
import { FAILED_RUN, healthState, makeBudget, makeJob, makeRotation, NOW } from "./sample-health-state.ts";

type Part = Partial<HealthFacts>;
type Sent = Readonly<Record<string, NotificationState>>;

function notified(part: Part, lastSent: Sent = {}, scrub = (text: string) => text) {
  return notificationsOf(healthState(part).conditions, new Map(Object.entries(lastSent)), scrub);
}

const failed = (job = "nightly", error = "no") => makeJob({ job, failedRun: { ...FAILED_RUN, error } });
const FAILED = { jobs: [failed()] };
const MISSING = { slices: { complete: 1, suspect: 0, failed: 0, missing: 2 } };

const IN_A_RUN = { ...MISSING, jobs: [makeJob({ mayReadMissing: true })] };
const FIVE_ATTEMPTS = { rotations: [makeRotation({ failedAttempts: 5 })] };
const EXPORT_WRONG_ROTATION_WELL = ["export nightly: wrong", "rotation nightly: well"];

test.each<[name: string, part: Part, lastSent: Sent, sent: readonly string[]]>([
  ["nothing is wrong", {}, {}, []],
  ["a job failed", FAILED, {}, ["export nightly: wrong"]],
  ["a job fails again", FAILED, { "export nightly": "wrong" }, []],
  ["a job works again", {}, { "export nightly": "wrong" }, ["export nightly: well"]],
  ["a job goes on working", {}, { "export nightly": "well" }, []],
  ["a job fails after its recovery was sent", FAILED, { "export nightly": "well" }, ["export nightly: wrong"]],
  ["an export of a rotation's name failed", FAILED, { "rotation nightly": "wrong" }, EXPORT_WRONG_ROTATION_WELL],
  ["days are missing", MISSING, {}, ["missing: wrong"]],
  ["more days are missing than were sent", MISSING, { missing: "wrong" }, []],
  ["days are missing that a run may read", IN_A_RUN, {}, []],
  ["days that were sent are missing in a run", IN_A_RUN, { missing: "wrong" }, []],
  ["a fifth attempt fails", FIVE_ATTEMPTS, { "key attempts exporter": "wrong" }, ["key attention exporter: wrong"]],
  ["a budget was sent and is below its threshold again", {}, { "budget limit 2026-03 80": "wrong" }, []],
  ["a budget's period was over before it was stored", { budgets: [makeBudget({ isBeforeStored: true })] }, {}, []],
  ["a budget will be exceeded", { budgets: [makeBudget({ reached: [] })] }, {}, []],
  ["an anomaly has ended", {}, { "anomaly production": "wrong" }, ["anomaly production: well"]],
  [
    "an anomaly has ended while a job fails",
    FAILED,
    { "anomaly production": "wrong", "export nightly": "wrong" },
    ["anomaly production: well"],
  ],
  [
    "a job works again, and anomalies could not be read",
    { notRead: "no" },
    { "export nightly": "wrong" },
    ["export nightly: well"],
  ],
  ["anomalies could not be read", { notRead: "no" }, { "anomaly production": "wrong" }, []],
])("what is sent if %s", (_, part, lastSent, sent) => {
  expect(notified(part, lastSent).map(({ subject, state }) => `${subject}: ${state}`)).toEqual(sent);
});

test("more than five jobs of one kind that fail at once are one notification", () => {
  const jobs = ["a", "b", "c", "d", "e", "f"].map((name) => failed(name));
  const covers = jobs.map(({ job }) => `export ${job}`);
  expect(notified({ jobs: jobs.slice(1) })).toHaveLength(5);
  const ofTwoKinds = jobs.map((job, i) => (i % 2 === 0 ? job : { ...job, kind: "rotation" as const }));
  expect(notified({ jobs: ofTwoKinds })).toHaveLength(6);
  expect(notified({ jobs })).toEqual([
    {
      ...{ subject: "many export", state: "wrong", covers },
      text: expect.stringMatching(
        /^6 changes of "export" at once; .* b, export c, export d and 2 more\. The first: export a failed/,
      ),
    },
  ]);
});

test("six conditions that end at once are one notification with the names of four", () => {
  const sent = Object.fromEntries(["a", "b", "c", "d", "e", "f"].map((name) => [`export ${name}`, "wrong" as const]));
  expect(notified({}, sent)).toMatchObject([
    {
      state: "well",
      text: expect.stringMatching(/^6 changes of "export" at once; .* export b, export c, export d and 2 more/),
    },
  ]);
});

test.each([
  [undefined, " — usage-export on node-1"],
  ["https://usage.example/pages", " — usage-export at usage.example, https://usage.example/pages"],
])("a worker with the URL %s signs its notifications%s", (publicUrl, expected) => {
  expect(senderSuffix(publicUrl, "node-1")).toBe(expected);
});

test("a name can't call everybody in a chat", () => {
  expect(sanitizeText("the @channel > @here", (text) => text)).toBe("The @\u200bchannel &gt; @\u200bhere");
});

test("a text begins with a capital", () => {
  expect(sanitizeText("abcdef", (text) => text, 4)).toBe("Abc…");
});

test("new causes with one code are one notification", () => {
  const cause = { project: null, isBillingRefused: false, slices: 1, slicesWithNumbers: 0, days: 1, projects: 1 };
  const failure = { code: "unavailable", error: "no", since: NOW };
  const causes = [true, false].map((isRetried) => ({ ...cause, ...failure, isRetried }));
  const slices = { ...MISSING.slices, missing: 0, failed: 2 };
  const text = expect.stringMatching(
    /^The service is not reachable, first seen .*; the service is not reachable, first seen /,
  );
  expect(notified({ causes, slices })).toMatchObject([{ subject: "failed unavailable", text }]);
  expect(notified({ causes: causes.slice(0, 1), slices: { ...slices, failed: 1 } })).toEqual([]);
});

const WITH_AN_END = Object.entries(TRAITS).filter(([name, traits]) => name !== "budget" && !("isQuiet" in traits));

test.each(WITH_AN_END)("the end of a condition %s is sent", (name) => {
  const ended = { subject: `${name} one`, state: "well", text: expect.stringMatching(/^Over: .+ one\.$/) };
  expect(notified({}, { [`${name} one`]: "wrong" })).toEqual([ended]);
});

function textOf(error: string, scrub?: (text: string) => string): string {
  return notified({ jobs: [failed("nightly", error)] }, {}, scrub)[0]?.text ?? "";
}

test("characters that Slack interprets are escaped", () => {
  expect(textOf("<!channel> &\n\t<https://evil.example|click>")).toMatch(
    /: &lt;!channel&gt; &amp; &lt;https:\/\/evil\.example\|click&gt;$/,
  );
});

test("a long text is never cut inside an escape or a character", () => {
  const plain = textOf("&😀".repeat(400)).replaceAll("&amp;", "&");
  expect([...plain]).toHaveLength(500);
  expect(plain).toMatch(/(&😀)+&?…$/u);
});

test("a secret is hidden before the text is cut to 500 characters or escaped", () => {
  const hide = (text: string) => text.replaceAll("open&sesame", "[secret]");
  expect(textOf("open&sesame", hide)).toMatch(/: \[secret\]$/);
  expect(textOf(`${"x".repeat(495 - textOf("").length)}open&sesame`, hide)).not.toContain("open");
});
