import { pino } from "pino";
import { expect, test } from "vitest";
import type { App } from "../../src/app.ts";
import type { Config } from "../../src/config/config.ts";
import { checkProject } from "../../src/jobs/check.ts";
import { Dialects } from "../../src/jobs/dialects.ts";
import type { ExportJob } from "../../src/usage/plan.ts";
import { KEY_RING, limit, openTestService } from "../service/open-test-service.ts";
import { answerJson, type Script, scriptedServer } from "../support/scripted-server.ts";
import { PROJECT, sampleAnswer, sampleJob } from "../usage/sample-request.ts";

const LISTS_NO_SCOPES: Script = ({ target }, response) =>
  target.includes("/auth/token") ? answerJson(response, 404, {}) : answerJson(response, 200, sampleAnswer([]));

/** The findings of a project that these exports read. */
async function findings(exports: readonly ExportJob[], script: Script, keys = KEY_RING) {
  await using server = await scriptedServer(script);
  await using service = openTestService(server.origin);
  const app = { log: pino({ level: "silent" }), signal: limit() } as unknown as App;
  const config = { exports, rotations: [] } as unknown as Config;
  const dialects = new Dialects({ app, db: undefined, service, keys });
  const context = { app, config, db: undefined, service, keys, dialects };
  return await checkProject(context, PROJECT);
}

test("a key that the service refuses is the only finding", async () => {
  const found = await findings([sampleJob()], (_, response) => answerJson(response, 401, {}));
  expect(found.map(({ what, state }) => `${state} ${what}`)).toEqual(["fail key"]);
});

test("each grouping and each filter is checked once, even if several jobs have it", async () => {
  const listen = { name: "listen", features: {}, dimensions: { endpoint: "listen" } };
  const jobs = [
    sampleJob({ groupings: ["none", "endpoint"] }),
    sampleJob({ name: "hourly", groupings: ["endpoint"], filters: [...sampleJob().filters, listen] }),
  ];
  const found = await findings(jobs, LISTS_NO_SCOPES);
  expect(found.map(({ what }) => what)).toEqual([
    "key",
    "grouping none",
    "grouping endpoint",
    "window",
    "filter listen",
  ]);
});
