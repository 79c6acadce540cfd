// A mistake on the command line or in the configuration is reported with exit status 2, before the service is called and before a
// connection to the database, which would be refused here.

import { expect } from "vitest";
import { programTest } from "./program-context.ts";
import { PRODUCTION, smallConfig } from "./small-config.ts";

const test = programTest();

type Mistake = {
  readonly config?: (baseUrl: string) => unknown;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Standard error matches each of these. */
  readonly messages: readonly RegExp[];
};

const inJob = (fields: Readonly<Record<string, unknown>>) => (url: string) => smallConfig(url, { exports: [fields] });

const MISTAKES: Readonly<Record<string, Mistake>> = {
  "an unknown grouping": {
    config: inJob({ groupings: ["none", "acessor"] }),
    messages: [/exports\[0\]\.groupings\[1\]/, /got "acessor"/, /did you mean "accessor"\?/],
  },
  "a key variable that is not set": {
    env: { USAGE_EXPORT_KEY: undefined },
    messages: [/projects\[0\]\.key/, /USAGE_EXPORT_KEY is not set/],
  },
  "a configuration file that does not exist": {
    args: ["export", "--config", "nowhere.json"],
    messages: [/nowhere\.json does not exist/, /--config/],
  },
  "an unknown command": { args: ["exprot"], messages: [/unknown command 'exprot'/, /Did you mean export\?/] },
  "an unknown option": {
    args: ["export", "--projcet", "x"],
    messages: [/unknown option '--projcet'/, /Did you mean --project\?/],
  },
  "an unknown job": { args: ["export", "--job", "nightli"], messages: [/--job: "nightli"/, /mean "nightly"\?/] },
  "a variable that turns off the checks of certificates": {
    env: { NODE_TLS_REJECT_UNAUTHORIZED: "0" },
    messages: [/NODE_TLS_REJECT_UNAUTHORIZED=0/, /NODE_EXTRA_CA_CERTS/],
  },
};

test.for(Object.entries(MISTAKES))(
  "%s",
  async ([_, { config = smallConfig, args = ["export"], env, messages }], { context }) => {
    const emulator = await context.serve();
    await context.configure(config(emulator.url));

    const { status, stdout, stderr } = await context.run(args, env);

    expect({ status, stdout, requests: emulator.requests }).toEqual({ status: 2, stdout: "", requests: [] });
    for (const words of messages) expect(stderr).toMatch(words);
    expect(stderr).not.toMatch(/\n\s+at /);
  },
);

test("a key in the configuration is refused, and not shown", async ({ context }) => {
  const literal = context.newSecret("jobs.config.json");
  await context.configure(smallConfig("https://api.example.com", { projects: [{ ...PRODUCTION, key: literal }] }));

  const { status, stderr } = await context.run(["export"]);

  expect(status).toBe(2);
  expect(stderr).toMatch(/projects\[0\]\.key.*"env"/);
});

test("without a command, the list of commands is printed", async ({ context }) => {
  const { status, stderr } = await context.run([]);

  expect(status).toBe(2);
  expect(stderr).toMatch(/export .*runs export jobs now/);
});
