// A plugin of the bundler: leaves out what packages load and this program does not use. Loading it takes longer than all of the
// program's own code.

import path from "node:path";
import type { Plugin } from "rolldown";

const PACKAGES = path.join(import.meta.dirname, "../node_modules");

/** In place of undici's index, which also loads fetch, WebSocket and caches: what proxy-agent.ts and the calls use. */
const UNDICI = `
  Object.assign(require("undici/lib/dispatcher/dispatcher.js").prototype, {
    request: require("undici/lib/api/api-request.js"),
    connect: require("undici/lib/api/api-connect.js"),
  });
  exports.Agent = require("undici/lib/dispatcher/agent.js");
  exports.Pool = require("undici/lib/dispatcher/pool.js");
  exports.EnvHttpProxyAgent = require("undici/lib/dispatcher/env-http-proxy-agent.js");
`;

/** The code that a package gets in place of a module. Each key names the package and the module that it loads. */
const REPLACED: Readonly<Record<string, string>> = {
  // HTTP/2 is turned off (service/client.ts).
  "undici node:http2": "exports.constants = {};",
  // The size is Node's default.
  "undici node:http": "exports.maxHeaderSize = 16384; exports.IncomingMessage = class {};",
  // The package loads all of zod, with texts in 50 languages, only to add a method that this program does not call.
  "@hono zod": "exports.z = { ZodType: class {} };",
  "commander node:child_process": "",
  // The worker plans the runs itself, so pg-boss has no schedules.
  "pg-boss cron-parser": "exports.CronExpressionParser = {};",
  "pg-boss rrule-temporal": "exports.RRuleTemporal = class {};",
  "node-cron child_process": "",
  // The log is written in the main thread.
  "pino worker_threads": "exports.isMainThread = true;",
  "pino ./lib/transport": "",
  "pino ./transport": "module.exports = () => { throw new Error('the log has no transports'); };",
};

const PREFIX = "\0less of ";

export const lessOfPackages: Plugin = {
  name: "less of packages",
  resolveId(id, importer = "") {
    if (id === "undici") return `${PREFIX}undici.cjs`;
    if (importer.startsWith(PREFIX)) return path.join(PACKAGES, id);
    const [, packageName] = /\/node_modules\/([^/]+)\/[^\0]*$/.exec(importer) ?? [];
    const replaced = `${packageName} ${id}`;
    return Object.hasOwn(REPLACED, replaced) ? `${PREFIX}${replaced}.cjs` : undefined;
  },
  load(id) {
    if (!id.startsWith(PREFIX)) return undefined;
    const name = id.slice(PREFIX.length, -".cjs".length);
    return name === "undici" ? UNDICI : REPLACED[name];
  },
};
