// Opens pages in a real browser, and records what they write to the console and what they request.

import { existsSync } from "node:fs";
import path from "node:path";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, onTestFinished } from "vitest";
import type { MonitorDeps } from "../../src/web/routes.ts";
import { openTestMonitor } from "../web/test-monitor.ts";

/** The browser is closed after the last test of the file. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) {
    throw new Error(`no browser at ${executablePath}: install Chromium there, or set CHROMIUM to the path of another`);
  }
  // A container has no user for the sandbox; the pages are our own.
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  afterAll(() => browser.close());
  return browser;
}

export type WatchedPage = {
  readonly page: Page;
  /** Everything on the console, including violations of the content security policy, and uncaught errors. */
  readonly consoleMessages: readonly string[];
  readonly requests: readonly string[];
};

/** The page is closed at the end of the test. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const consoleMessages: string[] = [];
  const requests: string[] = [];
  page.on("console", (message) => consoleMessages.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => consoleMessages.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(url);
  return { page, consoleMessages, requests };
}

/** Starts a worker's web server with these pages, and returns its address. The server is closed at the end of the test. */
export async function servePages(pages: MonitorDeps["pages"] = {}): Promise<string> {
  const monitor = await openTestMonitor({ pages });
  onTestFinished(() => monitor[Symbol.asyncDispose]());
  return monitor.url;
}

/** By how much the page is wider than the window. */
export async function sidewaysOverflow(page: Page): Promise<unknown> {
  return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
}

/** With PICTURES=DIR the page is saved there, for a person to look at. */
export async function savePicture(page: Page, name: string): Promise<void> {
  const { PICTURES } = process.env;
  if (PICTURES === undefined) return;
  await page.screenshot({ fullPage: true, path: path.join(PICTURES, `${name.replaceAll(/\W+/g, "-")}.png`) });
}

/** The width of a phone and of a desktop screen, each in light and in dark. */
export const SCREENS: readonly (readonly [string, BrowserContextOptions])[] = [390, 1440].flatMap((width) =>
  (["light", "dark"] as const).map((colorScheme): [string, BrowserContextOptions] => [
    `${width} px, ${colorScheme}`,
    { colorScheme, viewport: { width, height: 900 } },
  ]),
);
