// Chromium for the tests of pages, and what they all look at.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

export async function launch(packages, executablePath) {
  const load = createRequire(`${packages}/`);
  const { chromium } = load("playwright-core");
  const axe = readFileSync(load.resolve("axe-core/axe.min.js"), "utf8");
  const browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", "--no-first-run"],
  });
  return { browser, axe };
}

// What a page asks for, and what it complains of.
export function listen(page, seen) {
  page.on("request", (request) => seen.requests.push(request.url()));
  page.on("console", (message) => seen.errors.push(message.text()));
  page.on("pageerror", (error) => seen.errors.push(error.message));
  page.on("dialog", (dialog) => seen.errors.push(`dialog: ${dialog.message()}`));
}

export async function violations(page, axe) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate("axe.run()");
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
}
