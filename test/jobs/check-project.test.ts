import { pino } from "pino";
import { expect, test } from "vitest";
import type { App } from "../../src/app.ts";
import type { Config } from "../../src/config/config.ts";
import { checkProject } from "../../src/jobs/check.ts";
import { Dialects } from "../../src/jobs/dialects.ts";
import type { ExportJob } from "../../src/usage/plan.ts";
import { KEY_RING, limit, serve } from "../service/open-test-service.ts";
import { answeringJson, answerJson, type Script } from "../support/scripted-server.ts";
import { PROJECT, sampleAnswer, sampleJob } from "../usage/sample-request.ts";

const LISTS_NO_SCOPES: Script = ({ target }, response) =>
  target.includes("/auth/token") ? answerJson(response, 404, {}) : answerJson(response, 200, sampleAnswer([]));

/** The findings of a project that these exports read. */
async function findings(exports: readonly ExportJob[], script: Script) {
  const { service } = await serve(script);
  const app = { log: pino({ level: "silent" }), signal: limit() } as unknown as App;
  const config = { exports, rotations: [] } as unknown as Config;
  const context = { app, config, db: undefined, service, keys: KEY_RING };
  return await checkProject({ ...context, dialects: new Dialects(context) }, PROJECT);
}

test("a key that the service refuses is the only finding", async () => {
  const found = await findings([sampleJob()], answeringJson(401));
  expect(found.map(({ what, state }) => `${state} ${what}`)).toEqual(["fail key"]);
});

test("each grouping and each filter is checked once, even if several jobs have it", async () => {
  const listen = { name: "listen", features: {}, dimensions: { endpoint: "listen" } };
  const jobs = [
    sampleJob({ groupings: ["none", "endpoint"] }),
    sampleJob({ name: "hourly", groupings: ["endpoint"], filters: [...sampleJob().filters, listen] }),
  ];
  const found = await findings(jobs, LISTS_NO_SCOPES);
  const checked = ["key", "grouping none", "grouping endpoint", "window", "filter listen"];
  expect(found.map(({ what }) => what)).toEqual(checked);
});
