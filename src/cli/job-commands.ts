// The commands about jobs: list them, see when they run, pause and resume them.

import { Option } from "commander";
import type { Add, Load } from "./commands.ts";
import { parseCount, parseReason } from "./option-values.ts";

export function addJobCommands(add: Add): void {
  const jobs = add("jobs", "the jobs, when they run next, and which are paused", async (options) => {
    const { runJobs } = await import("./jobs.ts");
    return (app) => runJobs(app, options);
  }).option("--json", "answers in JSON");
  const addJob = (name: string, summary: string, load: Load) =>
    add(name, summary, load, jobs)
      .argument("<name>", "the job's name")
      .addOption(new Option("--kind <kind>", "where both have the name").choices(["export", "rotation"]))
      .option("--json", "answers in JSON");
  addJob("next", "the next times the job runs", async (options, [name = ""]) => {
    const { runJobsNext } = await import("./jobs.ts");
    const { kind, json, count } = options;
    return (app) => runJobsNext(app, name, { kind, json, count });
  }).addOption(new Option("--count <number>", "how many").default(5).argParser(parseCount));
  addJob("pause", "the workers leave the job alone until it is resumed", async (options, [name = ""]) => {
    const { runJobsPause } = await import("./jobs.ts");
    const { kind, json, why } = options;
    return (app) => runJobsPause(app, name, { kind, json, why });
  }).requiredOption("--why <reason>", "what the others should know", parseReason);
  addJob("resume", "the workers run the job again, and catch up what was due", async (options, [name = ""]) => {
    const { runJobsResume } = await import("./jobs.ts");
    const { kind, json } = options;
    return (app) => runJobsResume(app, name, { kind, json });
  });
}
