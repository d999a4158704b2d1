// Opens a page of `report --html` in Chromium, clicks through it, and prints what was seen as JSON.
// Arguments: the folder with the npm packages, Chromium, the page, and a folder for screenshots.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { launch, listen, violations } from "./browser.mjs";

const [packages, executablePath, file, folder] = process.argv.slice(2);
const calls = [];
const server = createServer((request, response) => {
  if (request.url !== "/favicon.ico") calls.push(request.url); // Chromium asks for it when it likes
  response.end();
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const origin = `http://127.0.0.1:${server.address().port}`;

const { browser, axe } = await launch(packages, executablePath);

// A page that would do all that a name from the ledger, or the page itself, must not do.
const attempt = (origin) => {
  const image = new Image();
  image.src = `${origin}/image`;
  const script = document.createElement("script");
  script.textContent = "window.ran = true";
  document.body.append(image, script);
  return Promise.allSettled([fetch(`${origin}/fetch`), new Promise((done) => setTimeout(done, 200))]);
};

// The colour and the height of each bar.
const bars = () => [...document.querySelectorAll("#chart rect")].map((bar) =>
  [getComputedStyle(bar).fill, Math.round(bar.getBoundingClientRect().height)]);

const seen = { requests: [], errors: [] };
async function open(options, path = file) {
  const page = await browser.newPage(options);
  listen(page, seen);
  await page.goto(`file://${path}`);
  return page;
}
async function look(page) {
  const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  return { background, bars: await page.evaluate(bars) };
}

const page = await open({ colorScheme: "light" });
seen.headings = await page.getByRole("heading").allTextContents();
seen.tables = await page.getByRole("table").locator("caption").allTextContents();

const table = page.getByRole("table", { name: "By tool" }).first();
seen.names = await table.getByRole("rowheader").allTextContents();

await page.locator("summary").click();
seen.times = await page.locator("#times tbody tr").evaluateAll((rows) =>
  rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
seen.titles = await page.locator("#chart title").allTextContents();

seen.light = await look(page);
await page.screenshot({ path: `${folder}/light.png`, fullPage: true });
await page.emulateMedia({ colorScheme: "dark" });
seen.dark = await look(page);
await page.screenshot({ path: `${folder}/dark.png`, fullPage: true });

const systemDark = await open({ colorScheme: "dark" });
seen.systemDark = await look(systemDark);
await page.emulateMedia({ colorScheme: "light" });

seen.accessible = [];
for (const each of [page, systemDark]) seen.accessible.push(...(await violations(each, axe)));
await systemDark.setViewportSize({ width: 390, height: 800 });
seen.beyond = await systemDark.evaluate(() => document.documentElement.scrollWidth - innerWidth);

seen.requested = [...seen.requests];
seen.logged = [...seen.errors];
await page.evaluate(attempt, origin);
seen.ran = await page.evaluate("window.ran ?? false");
seen.calls = [...calls];
const bare = await browser.newPage();
await bare.goto(origin);
await bare.setContent(readFileSync(file, "utf8").replace(/<meta http-equiv[^>]*>/, ""));
calls.length = 0;
await bare.evaluate(attempt, origin);
seen.ranWithoutPolicy = await bare.evaluate("window.ran ?? false");
seen.callsWithoutPolicy = calls.sort();

await browser.close();
server.close();
console.log(JSON.stringify(seen));
