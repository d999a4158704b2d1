// Opens a page of recorded calls in Chromium, clicks through it, and prints what was seen as JSON.
// Arguments: the folder with the npm packages, Chromium, the page, one with many calls, the address
// of one that is served, a rule file that it follows and what to write there, a folder for screenshots.
import { readFileSync, writeFileSync } from "node:fs";
import { launch, listen, violations } from "./browser.mjs";

const [packages, executablePath, file, many, address, rules, rule, folder] = process.argv.slice(2);
const { browser, axe } = await launch(packages, executablePath);
const seen = { requests: [], errors: [], accessible: [] };

async function open(url, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  listen(page, seen);
  await page.goto(url);
  return page;
}
const tools = (page) => page.locator("#rows tbody th a").allTextContents();
const chosen = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);
const legend = (page) => page.locator("#legend span").allTextContents();

const page = await open(`file://${file}`, { colorScheme: "light" });
seen.tools = await tools(page);
seen.found = await page.locator("#found").textContent();
seen.sorted = [];
for (const title of ["Server sent", "Server sent", "Tool"]) {
  await page.getByRole("columnheader", { name: title }).getByRole("button").click();
  seen.sorted.push(await tools(page));
}
await page.getByRole("button", { name: "Model reads" }).click();
await page.screenshot({ path: `${folder}/list.png` });
seen.accessible.push(...(await violations(page, axe)));
await page.getByLabel("Search").first().fill("issues");
seen.filtered = await tools(page);

// One call, by the keyboard alone.
await page.locator("#rows tbody th a").first().focus();
await page.keyboard.press("Enter");
await page.locator("#source li").first().waitFor();
seen.opened = [await chosen(page), await page.locator("#call-title").textContent()];
seen.facts = await page.locator("#facts p").allTextContents();
seen.steps = await page.locator("#facts table").first().locator("tbody tr").evaluateAll((rows) =>
  rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
seen.used = await page.locator("#facts table").nth(1).locator("tbody tr").evaluateAll((rows) =>
  rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
seen.legend = await legend(page);
seen.read = await page.locator("#read pre").allTextContents();
await page.locator("#text").focus();
await page.keyboard.type("body of 17");
await page.keyboard.press("Enter");
seen.hit = [await page.locator("#hits").textContent(), await page.locator("#source .found").getAttribute("class")];
await page.screenshot({ path: `${folder}/call.png` });
seen.accessible.push(...(await violations(page, axe)));
await page.locator("#client").selectOption({ label: "Claude Code" });
await page.waitForFunction(() => document.querySelector("#client").selectedOptions[0].label === "Claude Code");
await page.emulateMedia({ colorScheme: "dark" });
await page.screenshot({ path: `${folder}/call-dark.png` });
seen.accessible.push(...(await violations(page, axe)));
await page.keyboard.press("Escape");
await page.locator("#list").waitFor();
seen.closed = await chosen(page);
await page.setViewportSize({ width: 390, height: 800 });
seen.beyond = [await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)];
await page.locator("#rows tbody th a").first().click();
await page.locator("#source li").first().waitFor();
seen.beyond.push(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth));
await page.screenshot({ path: `${folder}/narrow.png` });

const begun = Date.now();
const large = await open(`file://${many}`);
await large.locator("#rows tbody tr").first().waitFor();
seen.openMilliseconds = Date.now() - begun;
seen.drawn = (await tools(large)).length;
seen.of = await large.locator("#found").textContent();
await large.getByRole("button", { name: /^Show 200 more/ }).click();
seen.drawnThen = (await tools(large)).length;
await large.goto(`file://${many}#calls/499`);
await large.locator("#call-title").waitFor();
seen.without = await large.locator("#facts").textContent();

// The page that follows: a mistake, then a rule.
const live = await open(address);
await live.locator("#rows tbody tr").first().waitFor();
await live.locator("#rows tbody th a").filter({ hasText: "issues" }).first().click();
await live.locator("#legend span").first().waitFor();
seen.legendBefore = await legend(live);
writeFileSync(rules, readFileSync(rules, "utf8").replace("version: 1", "version: 1\nrulez: 2"));
await live.locator("#mistakes li").first().waitFor();
seen.mistakes = await live.locator("#mistakes li").allTextContents();
const saved = Date.now();
writeFileSync(rules, rule);
await live.locator("#facts td").filter({ hasText: "keep" }).first().waitFor();
seen.followedMilliseconds = Date.now() - saved;
await live.waitForFunction(() => document.getElementById("mistakes").hidden);
seen.legendAfter = await legend(live);
await live.keyboard.press("Escape");
await live.waitForFunction(() => !document.querySelector("#rows.stale"));
seen.ruleInList = await live.locator("#rows tbody tr").filter({ hasText: "issues" }).first().locator("td").first().textContent();
seen.accessible.push(...(await violations(live, axe)));

await browser.close();
console.log(JSON.stringify(seen));
