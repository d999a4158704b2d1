// Opens a page of `report --html` in Chromium, clicks through it, and prints what was seen as JSON.
// Arguments: the folder with the npm packages, Chromium, the page, one of a single hour, and a folder
// for screenshots.
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { launch, listen, violations } from "./browser.mjs";

const [packages, executablePath, file, single, folder] = process.argv.slice(2);
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

// The number of pixels of the canvas for each colour that covers more than a hundredth of it.
const colors = () => {
  const canvas = document.querySelector("#chart canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const counts = {};
  for (let at = 0; at < data.length; at += 4) {
    const color = data.slice(at, at + 4).join();
    counts[color] = (counts[color] ?? 0) + 1;
  }
  return Object.keys(counts).filter((color) => counts[color] > data.length / 400 && color !== "0,0,0,0");
};

// The colour at the foot of the chart's middle.
const bar = () => {
  const canvas = document.querySelector("#chart canvas");
  const [all, plot] = [canvas, document.querySelector("#chart .u-over")].map((each) =>
    each.getBoundingClientRect());
  const scale = canvas.width / all.width;
  const [x, y] = [plot.left + plot.width / 2 - all.left, plot.bottom - 4 - all.top];
  return canvas.getContext("2d").getImageData(x * scale, y * scale, 1, 1).data.join();
};

const seen = { requests: [], errors: [] };
async function open(options, path = file) {
  const page = await browser.newPage(options);
  listen(page, seen);
  await page.goto(`file://${path}`);
  return page;
}
async function hover(page) {
  await page.locator("#chart .u-over").hover(); // in its middle
  return page.locator("#chart .u-value").allTextContents();
}
async function look(page) {
  const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  return { background, colors: (await page.evaluate(colors)).sort() };
}

const page = await open({ colorScheme: "light" });
seen.headings = await page.getByRole("heading").allTextContents();
seen.tables = await page.getByRole("table").locator("caption").allTextContents();

const table = page.getByRole("table", { name: "By tool" }).first();
const names = () => table.getByRole("rowheader").allTextContents();
const sorted = async () => ({
  names: await names(),
  order: await table.locator("th[aria-sort]").evaluateAll((cells) =>
    cells.map((cell) => [cell.textContent, cell.getAttribute("aria-sort")])),
});
seen.sorted = [await sorted()];
for (const title of ["Calls", "Calls", "Tool", "Largest"]) {
  await table.getByRole("button", { name: title, exact: true }).click();
  seen.sorted.push(await sorted());
}

await page.locator("summary").click();
seen.times = await page.locator("#times tbody tr").evaluateAll((rows) =>
  rows.map((row) => [...row.cells].map((cell) => cell.textContent)));
seen.hovered = await hover(page);
const hour = await open({}, single);
seen.singleTimes = await hour.locator("#times tbody tr").first().locator("th, td").allTextContents();
seen.singleHovered = await hover(hour);
seen.singleBar = await hour.evaluate(bar);
await hour.close();

seen.light = await look(page);
await page.screenshot({ path: `${folder}/light.png`, fullPage: true });
await page.emulateMedia({ colorScheme: "dark" });
await page.evaluate(() => new Promise(requestAnimationFrame)); // the event comes a frame later
await page.evaluate(() => new Promise(requestAnimationFrame));
seen.dark = await look(page);
await page.screenshot({ path: `${folder}/dark.png`, fullPage: true });

const dark = await open({ colorScheme: "dark" });
seen.darkAtFirst = await look(dark);

seen.accessible = [];
for (const each of [page, dark]) seen.accessible.push(...(await violations(each, axe)));
await dark.setViewportSize({ width: 390, height: 800 });
seen.beyond = await dark.evaluate(() => document.documentElement.scrollWidth - innerWidth);

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
