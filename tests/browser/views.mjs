// Opens every view of the page at ADDRESS as a person would. Usage: node views.mjs ADDRESS FOLDER
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const { chromium } = createRequire(`${process.argv[3]}/`)("playwright-core");
const [, , address, folder] = process.argv;
const at = (query) => new URL(`/?${new URLSearchParams(query)}`, address).href;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
const faults = [];
page.on("pageerror", (e) => faults.push(`error: ${e.message}`));
page.on("console", (m) => m.type() === "error" && !/status of 404/.test(m.text()) && faults.push(`console: ${m.text()}`));
page.on("dialog", (d) => {
	faults.push(`a dialog: ${d.message()}`);
	d.dismiss();
});
page.on("request", (r) => r.url().startsWith(new URL("/", address).href) || faults.push(`asks elsewhere: ${r.url()}`));

const shown = () => page.waitForFunction(() => document.getElementById("live").textContent.endsWith("shown"));
const text = (selector = "main") => page.locator(selector).innerText();
let done = 0;

async function test(name, what) {
	faults.length = 0;
	await what();
	assert.deepEqual(faults, [], name);
	await page.screenshot({ path: `${folder}/${String(++done).padStart(2, "0")}-${name.replace(/\W+/g, "-")}.png` });
	console.log(`ok ${done} ${name}`);
}

async function open(query) {
	await page.goto(at(query));
	await shown();
}

await test("the printed address opens the page, without the token in it", async () => {
	await page.goto(address);
	await shown();
	assert.ok(!page.url().includes("token"));
	assert.match(await text(), /gzip/);
});

await test("top is sorted and filtered", async () => {
	await open({ view: "top", db: 1 });
	assert.match(await text(), /hot/);
	await page.locator("button.sort", { hasText: "procedure" }).click();
	await page.waitForURL(/sort=procedure/);
	await page.fill("input.search", "twin");
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => document.querySelectorAll("main tbody tr").length === 2);
	await page.selectOption("main select", "image");
	await page.waitForURL(/by=image/);
});

await test("unknown and lost samples are in sight in every view", async () => {
	for (const view of ["top", "calls", "values", "paths", "streams", "diff"]) {
		await open({ view, db: 1, event: "cpu-clock" });
		await page.waitForFunction(() => /10 unknown.*5 lost.*3 throttled/.test(document.getElementById("footer").innerText));
	}
});

await test("a time is brushed, all views follow, and the link shows it again", async () => {
	await open({ view: "top", db: 1 });
	await page.locator("svg.timeline").waitFor();
	const box = await page.locator("svg.timeline").boundingBox();
	await page.mouse.move(box.x + 2, box.y + 30);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width / 3, box.y + 30, { steps: 5 });
	await page.mouse.up();
	await page.waitForURL(/time=/);
	await page.waitForFunction(() => /1,000 samples/.test(document.getElementById("footer").innerText));
	const link = page.url();
	await page.goto("about:blank");
	await page.goto(link);
	await shown();
	assert.match(await text("#header"), /time .* to /);
	await page.keyboard.press("x");
	await page.waitForFunction(() => /1,100 samples/.test(document.getElementById("footer").innerText));
});

await test("calls: zoom, search, leaves, around a procedure", async () => {
	await open({ view: "calls" });
	await page.locator(".flame div").first().click();
	await page.waitForURL(/zoom=0/);
	await page.locator(".flame").focus();
	await page.keyboard.press("ArrowDown");
	await page.keyboard.press("Escape");
	await page.waitForFunction(() => !location.search.includes("zoom"));
	await page.fill("input.search", "gzip");
	await page.keyboard.press("Enter");
	await page.waitForFunction(() => document.querySelectorAll(".flame .found").length > 0);
	assert.match(await text(), /% is in what was found/);
	await page.getByLabel("from the leaves").click();
	await page.waitForURL(/way=up/);
	await page.waitForFunction(() => Number(document.querySelector(".flame").dataset.boxes) > 1);
	await page.getByLabel("around a procedure").click();
	await page.waitForURL(/way=sandwich/);
	await page.waitForFunction(() => document.querySelectorAll(".flame").length === 2);
});

await test("from a call to its procedure, its code, its graph with a path", async () => {
	await open({ view: "top" });
	await page.locator("main tbody a").first().click();
	await page.waitForURL(/view=procedure/);
	await shown();
	await page.waitForFunction(() => document.querySelectorAll(".listing tr").length > 20);
	await page.keyboard.press("h");
	await page.waitForFunction(() => document.querySelector(".listing .selected"));
	await page.goto(at({ view: "paths" }));
	await shown();
	await page.locator("main tbody td a").first().click();
	await page.waitForURL(/part=graph/);
	await page.waitForFunction(() => document.querySelectorAll(".graph .on-path").length > 1);
});

await test("why, values, streams say something", async () => {
	await open({ view: "why" });
	assert.match(await text(), /Where the cycles went[\s\S]*execution/);
	await open({ view: "values" });
	assert.match(await text(), /gzip/);
	await open({ view: "streams" });
	assert.match(await text(), /references/);
});

await test("two epochs are compared", async () => {
	await open({ view: "diff", db: 1 });
	const selects = page.locator("main select");
	await selects.nth(0).selectOption("1:1");
	await page.waitForURL(/before=/);
	await page.locator("main select").nth(1).selectOption("1:2");
	await page.waitForURL(/after=/);
	await page.waitForFunction(() => /changes are significant/.test(document.querySelector("main").innerText));
});

await test("what is not there is said in words", async () => {
	await open({ view: "procedure", procedure: "no-such-procedure" });
	assert.ok((await text(".failure")).length > 10);
	await open({ view: "streams", db: 1 });
	assert.match(await text(), /record --bursts/);
	await open({ view: "calls", db: 1 });
	assert.match(await text(), /record/);
	await open({ view: "top", comm: "nobody" });
	assert.match(await text(), /No samples/);
});

await test("hostile names are text", async () => {
	for (const view of ["top", "why", "values", "diff"]) {
		await open({ view, db: 2 });
		await page.waitForTimeout(100);
	}
	await open({ view: "top", db: 2 });
	assert.match(await text(), /<img src=x onerror=alert\(1\)>/);
	assert.equal(await page.locator("main img, main script").count(), 0);
	await page.locator("main tbody a").first().click();
	await page.waitForTimeout(500);
});

await test("keys reach every view, the search and the help", async () => {
	await open({});
	for (const [key, view] of [["2", "calls"], ["5", "values"], ["1", "top"]]) {
		await page.keyboard.press(key);
		await page.waitForURL(new RegExp(`view=${view}`));
		await shown();
	}
	await page.keyboard.press("/");
	assert.equal(await page.evaluate(() => document.activeElement.className), "search");
	await page.keyboard.press("Escape");
	await page.keyboard.press("?");
	await page.locator("dialog").waitFor();
	await page.keyboard.press("Escape");
	await page.keyboard.press("t");
	assert.ok(["dark", "light"].includes(await page.evaluate(() => document.documentElement.dataset.theme)));
	await page.goBack();
});

await test("everything that can be operated has a name", async () => {
	for (const view of ["top", "calls", "procedure", "values", "paths", "streams", "diff"]) {
		await open({ view });
		const nameless = await page.evaluate(() => [...document.querySelectorAll("a, button, input, select, [role=img], [role=tree]")]
			.filter((e) => e.offsetParent !== null && !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length)).map((e) => e.outerHTML));
		assert.deepEqual(nameless, [], view);
	}
});

await browser.close();
