// Questions about one project or key: what `check` finds, whether a new key works, and whether a replaced key was used.

import { expect, test } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { AppError } from "../../src/errors.ts";
import type { RotationContext } from "../../src/jobs/context.ts";
import { Dialects } from "../../src/jobs/dialects.ts";
import { lastUseVerdict, mayRead, retryWhileUnknown, verifyKey } from "../../src/jobs/key-checks.ts";
import { checkProject } from "../../src/jobs/project-check.ts";
import { Secret } from "../../src/secret.ts";
import type { Day } from "../../src/usage/days.ts";
import type { ExportJob } from "../../src/usage/export-plan.ts";
import { JOB } from "../keys/sample-ledger.ts";
import { KEY_RING, serve } from "../service/open-test-service.ts";
import { answeringJson, answerJson, type Script } from "../support/scripted-server.ts";
import { silentApp } from "../support/silent-app.ts";
import { PROJECT, sampleAnswer, sampleJob } from "../usage/sample-request.ts";

const DESCRIBES_NO_KEY: Script = ({ target }, response) =>
  target.includes("/auth/token") ? answerJson(response, 404, {}) : answerJson(response, 200, sampleAnswer([]));

/** The findings of a project that these exports read. */
async function findings(exports: readonly ExportJob[], script: Script) {
  const { service } = await serve(script);
  const app = silentApp();
  const config = { exports, rotations: [] } as unknown as Config;
  const context = { app, config, db: undefined, service, keyRing: KEY_RING };
  return await checkProject({ ...context, dialects: new Dialects(context) }, PROJECT);
}

test("a key that the service refuses is the only finding", async () => {
  const found = await findings([sampleJob()], answeringJson(401));
  expect(found.map(({ what, state }) => `${state} ${what}`)).toEqual(["fail key"]);
});

test("with a key that may only read usage, both usage and billing are checked", async () => {
  const sources = ["usage", "billing"] as const;
  const jobs = sources.map((source) => sampleJob({ name: source, source, groupings: ["none"] }));
  const found = await findings(jobs, answeringJson(200, { api_key_id: "key-1", scopes: ["usage:read"] }));
  const checked = ["key", "grouping none", "window", "billing grouping none", "billing window"];
  expect(found.map(({ what }) => what)).toEqual(checked);
});

test("each grouping and each filter is checked once, even if several jobs have it", async () => {
  const listen = { name: "listen", features: {}, dimensions: { endpoint: "listen" } };
  const jobs = [
    sampleJob({ groupings: ["none", "endpoint"] }),
    sampleJob({ name: "hourly", groupings: ["endpoint"], filters: [...sampleJob().filters, listen] }),
  ];
  const found = await findings(jobs, DESCRIBES_NO_KEY);
  const checked = ["key", "grouping none", "grouping endpoint", "window", "filter listen"];
  expect(found.map(({ what }) => what)).toEqual(checked);
});

test.each<readonly [scopes: readonly string[], source: "usage" | "billing", reads: boolean]>([
  [["project:read"], "usage", true],
  [["usage:read"], "usage", true],
  [["member"], "usage", true],
  [["usage:write", "keys:read"], "usage", false],
  [["member"], "billing", false],
])("a key with the scopes %j may read %s: %s", (scopes, source, reads) => {
  expect(mayRead(source, scopes)).toBe(reads);
});

const KEY = new Secret("0123456789abcdef0123456789abcdef01234567");
const refusal = (status: number) =>
  new AppError("unauthorized", `the service answered ${status}`, { details: { status } });

/** Makes a call that fails with these errors, one at each attempt, and then succeeds. */
async function callFailingWith(failures: readonly Error[]) {
  let calls = 0;
  let forgotten = 0;
  const service = { forgetRefusals: () => void forgotten++ };
  const call = async () => {
    const failure = failures[calls++];
    if (failure) throw failure;
  };
  const error = await retryWhileUnknown(service, KEY, new AbortController().signal, call).catch((thrown) => thrown);
  return { calls, forgotten, error };
}

test("a call is repeated after a 401", async () => {
  expect(await callFailingWith([refusal(401)])).toEqual({ calls: 2, forgotten: 1, error: undefined });
});

test("a call fails after three 401s", async () => {
  const made = await callFailingWith([refusal(401), refusal(401), refusal(401)]);
  expect(made).toMatchObject({ calls: 3, error: { code: "unauthorized" } });
});

test.each([refusal(403), new AppError("unavailable", "no answer"), new TypeError("no function")])(
  "a call is not repeated after another failure: %s",
  async (failure) => {
    expect(await callFailingWith([failure])).toEqual({ calls: 1, forgotten: 0, error: failure });
  },
);

test("an undescribed key without the right to usage is verified by listing projects", async () => {
  const script: Script = ({ target }, response) => answerJson(response, target.includes("token") ? 404 : 403, {});
  const context = { app: silentApp(), service: (await serve(script)).service } as unknown as RotationContext;
  const opened = { apiKeyId: "new", key: KEY, scopesGranted: [] };
  const verified = verifyKey(context, { ...JOB, scopes: ["keys:write"] }, opened);
  await expect(verified).rejects.toThrow("GET /v1/projects: the service answered 403");
});

const TODAY = "2026-05-08";
/** Usage is recent from this day on. */
const RECENT = "2026-05-05";
const GRACE_START = "2026-05-01";
const LISTED = new Set(["old-key", "new-key"]);
const use = (accessor: string, day: Day) => ({ accessor, day });
const verdict = (used: readonly { accessor: string; day: Day }[], listed: ReadonlySet<string> = LISTED) =>
  lastUseVerdict({ apiKeyId: "old-key" }, used, listed, GRACE_START, TODAY);

const breakdown = (text: string) => `the breakdown by accessor ${text}`;

test.each<[string, readonly { accessor: string; day: Day }[], string, string]>([
  [
    "is in use if it has usage, of which the newest day is named",
    [use("old-key", "2026-05-04"), use("old-key", "2026-05-02"), use("new-key", TODAY)],
    "yes",
    "shows usage on 2026-05-04",
  ],
  ["is unused if another has recent usage", [use("new-key", RECENT)], "no", "shows no usage since 2026-05-01"],
  [
    "may be in use if no key has recent usage",
    [use("new-key", "2026-05-04")],
    "unknown",
    "shows no usage by any key after 2026-05-04",
  ],
])("a replaced key %s", (_, used, seen, text) => {
  expect(verdict(used)).toEqual({ seen, text: breakdown(text) });
});

test.each([
  ["there is no usage", [], LISTED],
  ["accessors are not ids of keys", [use("somebody@example.com", TODAY)], LISTED],
  ["the service lists no keys", [use("new-key", TODAY)], new Set<string>()],
])("it is unknown whether a replaced key was used if %s", (_, used, listed) => {
  expect(verdict(used, listed)).toEqual({ seen: "unknown", text: breakdown("does not tell which key is which") });
});
