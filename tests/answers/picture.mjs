// Takes the picture of a call of a page. Arguments: the folder with the npm packages, Chromium, the
// page, the picture.
import { launch } from "../cli/page/browser.mjs";

const [packages, executablePath, file, picture] = process.argv.slice(2);
const { browser } = await launch(packages, executablePath);
const page = await browser.newPage({ viewport: { width: 1180, height: 1400 }, colorScheme: "light" });
await page.goto(`file://${file}#calls/0`);
await page.locator("#source li").first().waitFor();
await page.evaluate(() => document.activeElement.blur());
await page.screenshot({ path: picture, clip: { x: 0, y: 0, width: 1180, height: 900 } });
await browser.close();
