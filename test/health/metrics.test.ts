import { expect, test } from "vitest";
import type { SeriesHealth } from "../../src/db/health.ts";
import { healthState } from "./sample-health-state.ts";
import { testMetrics } from "./test-metrics.ts";

const MISSING: SeriesHealth = {
  ...{ seriesId: 1, key: "key", project: "p", source: "usage", grouping: "none", filter: "all", isActive: true },
  ...{ complete: 0, missing: 2, failed: 0, suspect: 0, freshThrough: null },
};
const MISSING_LINE = 'usage_export_incomplete_slices{project="p",grouping="none",filter="all",status="missing"} 2';

const CONFIG = { hash: "0123abcd", rotations: [{ name: "exporter" }] };

test("the events of this process are counted", async () => {
  const metrics = testMetrics({ config: () => CONFIG });
  metrics.runEnded({ kind: "export", job: "nightly", trigger: "schedule", status: "ok" });
  metrics.rowsChanged("nightly", 7);
  metrics.attemptEnded({ operation: "breakdown", result: "unavailable", seconds: 0.3, number: 1 });
  metrics.attemptEnded({ operation: "breakdown", result: "ok", seconds: 70, number: 2 });
  metrics.keyFallback("exporter");
  metrics.tickEnded(0.02);
  metrics.notificationEnded("webhook", "failed");
  metrics.configReloaded("refused");
  expect(await metrics.samples()).toEqual(
    expect.arrayContaining([
      'usage_export_runs_total{kind="export",job_name="nightly",trigger="schedule",status="ok"} 1',
      'usage_export_rows_changed_total{job_name="nightly"} 7',
      'usage_export_service_requests_total{operation="breakdown",result="unavailable"} 1',
      'usage_export_service_requests_total{operation="breakdown",result="ok"} 1',
      'usage_export_service_retries_total{operation="breakdown"} 1',
      'usage_export_service_request_duration_seconds_bucket{le="0.25",operation="breakdown"} 0',
      'usage_export_service_request_duration_seconds_bucket{le="0.5",operation="breakdown"} 1',
      'usage_export_service_request_duration_seconds_bucket{le="60",operation="breakdown"} 1',
      'usage_export_service_request_duration_seconds_count{operation="breakdown"} 2',
      'usage_export_api_key_fallbacks_total{rotation="exporter"} 1',
      'usage_export_tick_duration_seconds_bucket{le="0.025"} 1',
      'usage_export_notices_total{to="webhook",result="failed"} 1',
      'usage_export_config_reloads_total{result="refused"} 1',
      'usage_export_config_reloads_total{result="taken"} 0',
    ]),
  );
});

test("the first scrape has the facts about this process, and 0 for counters whose first increase matters", async () => {
  expect(await testMetrics({ config: () => CONFIG, ready: () => false }).samples()).toEqual(
    expect.arrayContaining([
      `usage_export_build_info{version="1.2.3",node_version="${process.version}",schema="0006_create_notice"} 1`,
      'usage_export_config_info{hash="0123abcd"} 1',
      "usage_export_ready 0",
      'usage_export_api_key_fallbacks_total{rotation="exporter"} 0',
      'usage_export_notices_total{to="dead_man",result="failed"} 0',
    ]),
  );
});

test("after a change of the configuration a scrape shows the new one, and none of the rotations that are gone", async () => {
  let config = CONFIG;
  const metrics = testMetrics({ config: () => config });
  await metrics.samples();
  config = { hash: "4567", rotations: [{ name: "other" }] };
  const samples = await metrics.samples();
  expect(samples.filter((line) => /config_info/.test(line))).toEqual(['usage_export_config_info{hash="4567"} 1']);
  expect(samples).toContain('usage_export_api_key_fallbacks_total{rotation="other"} 0');
});

test("a scrape also has the default metrics of the process and of Node", async () => {
  const { text, contentType } = await testMetrics().scrape();
  expect(contentType).toBe("text/plain; version=0.0.4; charset=utf-8");
  for (const name of ["process_resident_memory_bytes", "nodejs_eventloop_lag_seconds", "nodejs_active_handles"]) {
    expect(text).toContain(`\n${name}`);
  }
});

test("metrics that are opened twice in a process do not share their counts", async () => {
  const [one, other] = [testMetrics(), testMetrics()];
  one.rowsChanged("nightly", 1);
  expect((await other.samples()).filter((line) => line.startsWith("usage_export_rows_changed_total"))).toEqual([]);
});

test("each scrape reads the gauges from the database, and a series that is gone has no sample", async () => {
  const series = [MISSING];
  const metrics = testMetrics({ readHealth: async () => healthState({ series }) });
  expect(await metrics.samples()).toEqual(expect.arrayContaining([MISSING_LINE, "usage_export_database_up 1"]));
  series.pop();
  expect(await metrics.samples()).not.toContain(MISSING_LINE);
});

test("series of billing are told from those of usage by their source", async () => {
  const series = [MISSING, { ...MISSING, source: "billing" as const, missing: 5 }];
  const samples = await testMetrics({ readHealth: async () => healthState({ series }) }).samples();
  expect(samples).toContain(MISSING_LINE);
  expect(samples).toContain(MISSING_LINE.replace('"p"', '"p",source="billing"').replace(/2$/, "5"));
});

test("without the database a scrape has all other metrics, and the reason is logged once", async () => {
  let isDown = true;
  const metrics = testMetrics({
    readHealth: async () => {
      if (isDown) throw new Error("connect ECONNREFUSED 10.0.0.1:5432");
      return healthState({ series: [MISSING] });
    },
  });
  metrics.rowsChanged("nightly", 1);
  await metrics.samples();
  const samples = await metrics.samples();
  expect(samples).toEqual(
    expect.arrayContaining(["usage_export_database_up 0", 'usage_export_rows_changed_total{job_name="nightly"} 1']),
  );
  expect(samples.join()).not.toMatch(/incomplete_slices|ECONNREFUSED/);
  expect(metrics.lines).toHaveLength(1);
  expect(metrics.lines[0]).toContain("ECONNREFUSED");

  isDown = false;
  expect(await metrics.samples()).toEqual(expect.arrayContaining([MISSING_LINE, "usage_export_database_up 1"]));
});

test("a health state that can't be read in time does not make the database count as away, unless the worker misses it too", async () => {
  let isReady = true;
  const tooSlow = Object.assign(new Error("canceling statement due to statement timeout"), { code: "57014" });
  const metrics = testMetrics({ ready: () => isReady, readHealth: () => Promise.reject(tooSlow) });
  expect(await metrics.samples()).toEqual(
    expect.arrayContaining(["usage_export_database_up 1", "usage_export_health_read 0"]),
  );
  isReady = false;
  expect(await metrics.samples()).toEqual(
    expect.arrayContaining(["usage_export_database_up 0", "usage_export_health_read 0"]),
  );
});

test("a configured name with any characters is escaped in labels", async () => {
  const series = [{ ...MISSING, project: 'a "b"\\\n' }];
  const samples = await testMetrics({ readHealth: async () => healthState({ series }) }).samples();
  expect(samples.join()).toContain('project="a \\"b\\"\\\\\\n"');
});
