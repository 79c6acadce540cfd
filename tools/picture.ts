// Makes docs/dashboard.png, the picture of the README: the dashboard of a demo, in Chromium. `npm run picture`.

import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const ROOT = path.join(import.meta.dirname, "..");
const SIZE = { width: 1280, height: 566 };

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "usage-export-picture-"));
const demo = spawn(process.execPath, [path.join(ROOT, "src/main.ts"), "demo", "--serve"], {
  cwd: folder,
  stdio: ["ignore", "pipe", "inherit"],
});
try {
  const url = await dashboardUrl();
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  // A container has no user for the sandbox; the page is our own.
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: SIZE, colorScheme: "light" });
  await page.goto(url);
  await page.waitForLoadState("networkidle");
  await page.screenshot({ path: path.join(ROOT, "docs/dashboard.png") });
  await browser.close();
} finally {
  demo.kill();
  fs.rmSync(folder, { recursive: true });
}

async function dashboardUrl(): Promise<string> {
  for await (const line of createInterface(demo.stdout)) {
    const [url] = /http:\S+/.exec(line.startsWith("dashboard: ") ? line : "") ?? [];
    if (url) return url;
  }
  throw new Error("the demo ended without a dashboard");
}
