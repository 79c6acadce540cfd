// Opens pages in a real browser, and records what they write to the console and what they request.

import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll } from "vitest";

/** Closed after the test file. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  // A container has no user for the sandbox; the pages are our own.
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  afterAll(() => browser.close());
  return browser;
}

export type WatchedPage = {
  readonly page: Page;
  /** Everything on the console, including violations of the content security policy, and uncaught errors. */
  readonly complaints: readonly string[];
  readonly requests: readonly string[];
};

export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const complaints: string[] = [];
  const requests: string[] = [];
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(url);
  return { page, complaints, requests };
}

/** The width of a phone and of a desktop screen, each in light and in dark. */
export const SCREENS: readonly (readonly [string, BrowserContextOptions])[] = [390, 1440].flatMap((width) =>
  (["light", "dark"] as const).map((colorScheme): [string, BrowserContextOptions] => [
    `${width} px, ${colorScheme}`,
    { colorScheme, viewport: { width, height: 900 } },
  ]),
);
