// How long the page takes to open and to answer, in a real Chromium.
// Usage: node page.mjs ADDRESS FOLDER ROUNDS: the first database is a week, the second has many contexts.
import { createRequire } from "node:module";

const [, , address, folder, rounds] = process.argv;
const { chromium } = createRequire(`${folder}/`)("playwright-core");
const at = (query) => new URL(`/?${new URLSearchParams(query)}`, address).href;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
const times = new Map();

// Until it is drawn: two frames behind what says so.
const shown = () => page.waitForFunction(() => document.getElementById("live").textContent.endsWith("shown"), null, { polling: "raf" });
const note = (what, ms) => times.set(what, [...(times.get(what) ?? []), ms]);

async function open(what, query) {
	const start = performance.now();
	await page.goto(at(query));
	await shown();
	note(what, performance.now() - start);
}

// Inside the page, from the event to the second frame after all that it caused.
async function act(what, how) {
	note(what, await page.evaluate(async (body) => {
		const frame = () => new Promise((done) => requestAnimationFrame(done));
		const start = performance.now();
		await new Function(`return (async () => { ${body} })()`)();
		await frame();
		await frame();
		return performance.now() - start;
	}, how));
	await shown();
}

await page.goto(address);
await shown();
for (let i = 0; i < Number(rounds); i++) {
	await open("week: open the page", { db: 0 });
	await act("week: sort by procedure", `[...document.querySelectorAll("button.sort")].find((b) => /procedure/.test(b.textContent)).click()`);
	await act("week: search", `const s = document.querySelector("input.search"); s.value = "f1"; s.dispatchEvent(new Event("change"))`);
	await open("contexts: open the flame graph", { db: 1, view: "calls" });
	const press = (key) => `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "${key}", bubbles: true }))`;
	await page.locator(".flame").first().focus().catch(() => {});
	await act("contexts: a box down", press("ArrowDown"));
	await act("contexts: zoom in", press("Enter"));
	await act("contexts: zoom out", `history.back()`);
	await act("contexts: search", `const s = document.querySelector("input.search"); s.value = "alloc"; s.dispatchEvent(new Event("change"))`);
	await act("contexts: from the leaves", `document.querySelectorAll("input[name=way]")[1].click()`);
	await act("contexts: from the roots", `document.querySelectorAll("input[name=way]")[0].click()`);
}
await browser.close();
for (const [what, list] of times) {
	list.sort((a, b) => a - b);
	console.log([what, list[list.length >> 1].toFixed(0), list[0].toFixed(0), list[list.length - 1].toFixed(0)].join("|"));
}
