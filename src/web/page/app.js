// The frame around the views: what is selected, which view, keys, and the light.

import { report, forget } from "./api.js";
import { h, failure, empty, announce, clock, number, percent } from "./dom.js";
import { FILTERS, address, filters, go, onChange, state } from "./state.js";
import { drawTimeline, forgetTimeline } from "./timeline.js";
import { top } from "./top.js";
import { calls } from "./calls.js";
import { procedure } from "./procedure.js";
import { why } from "./why.js";
import { values, paths, streams } from "./reports.js";
import { diff } from "./diff.js";

const VIEWS = [
	["top", "Top", top], ["calls", "Calls", calls], ["procedure", "Procedure", procedure], ["why", "Why", why],
	["values", "Values", values], ["paths", "Paths", paths], ["streams", "Streams", streams], ["diff", "Diff", diff],
];

const KEYS = [
	["1 to 8", "the views, from left to right"], ["/", "search in the view"], ["Esc", "leave the search; zoom out"],
	["arrows, Enter", "move and zoom in flame graphs"], ["[ ]", "earlier, later (with a time selected)"],
	["h", "the hottest instruction (Procedure)"], ["x", "take all filters away"], ["r", "read the database again"], ["t", "light or dark"], ["?", "this list"],
];

let databases = [];
let drawing = 0;

function header() {
	const s = state();
	const current = VIEWS.find(([name]) => name === s.view)?.[0] ?? "top";
	document.getElementById("header").replaceChildren(
		h("div", { class: "title" }, h("h1", null, "culprit"),
			databases.length > 1 ? h("label", null, "database ",
				h("select", { onchange: (e) => go({ db: e.target.value === "0" ? null : e.target.value, epoch: null, time: null }) },
					databases.map((d, i) => h("option", { value: i, selected: String(i) === (s.db ?? "0") }, d))))
				: h("span", { class: "dim" }, databases[0] ?? ""),
			h("span", { class: "grow" }),
			h("button", { onclick: toggleTheme, title: "light or dark (t)" }, "Light / dark"),
			h("button", { onclick: help, title: "keys (?)" }, "Keys")),
		h("nav", { "aria-label": "Views" }, h("ul", null, VIEWS.map(([name, title], i) =>
			h("li", null, h("a", { href: address({ view: name, q: null, sort: null, zoom: null }), "data-view": name,
				"aria-current": name === current ? "page" : null, title: `key ${i + 1}` }, title))))),
		filterBar(s));
}

function filterBar(s) {
	const field = (name, title, hint) => h("label", null, `${title} `,
		h("input", { name, value: s[name] ?? "", placeholder: hint, spellcheck: "false",
			onchange: (e) => go({ [name]: e.target.value.trim() }) }));
	return h("form", { class: "filters", "aria-label": "What is selected", onsubmit: (e) => e.preventDefault() },
		field("event", "event", "all"), field("comm", "process", "name or glob"), field("image", "image", "name or glob"),
		field("epoch", "epochs", "all, last, 2-4"),
		s.time && h("span", { class: "chip" }, `time ${timeWords(s.time)} `,
			h("button", { onclick: () => go({ time: null }), "aria-label": "all of the time" }, "×")),
		FILTERS.some((f) => f !== "db" && s[f]) && h("button", { onclick: clear }, "Clear (x)"));
}

function timeWords(text) {
	const [from, to] = text.split(",").map(Number);
	return Number.isFinite(from) && Number.isFinite(to) ? `${clock(from)} to ${clock(to)}` : text;
}

const clear = () => go(Object.fromEntries(FILTERS.filter((f) => f !== "db").map((f) => [f, null])));

// Lost and unknown samples are never out of sight.
async function footer() {
	const element = document.getElementById("footer");
	try {
		const { events } = await report("timeline", { ...filters(), proc: null, slices: 200 });
		element.replaceChildren(h("div", { class: "account" }, events.map((e) => h("span", null, h("b", null, e.name), " ",
			`${number(e.samples)} samples`,
			["unknown", "lost", "throttled", "missed"].map((k) =>
				`, ${number(e[k])} ${k} (${percent(e[k] / Math.max(1, e.attributed + e.unknown + e.lost + e.throttled + e.missed))})`)))));
	} catch {
		element.replaceChildren();
	}
}

async function draw() {
	const turn = ++drawing;
	const s = state();
	const view = VIEWS.find(([name]) => name === s.view) ?? VIEWS[0];
	const main = document.getElementById("main");
	header();
	drawTimeline(document.getElementById("timeline"));
	footer();
	document.title = `${s.procedure && view[0] === "procedure" ? s.procedure : view[1]} · culprit`;
	const waiting = setTimeout(() => turn === drawing && main.replaceChildren(empty("Working…")), 150);
	let content;
	try {
		content = await view[2](s);
	} catch (error) {
		content = failure(error);
	}
	clearTimeout(waiting);
	if (turn !== drawing) return;
	main.replaceChildren(...[content].flat());
	announce(`${view[1]} shown`);
}

function help() {
	const box = h("dialog", { "aria-label": "Keys" }, h("h2", null, "Keys"),
		h("dl", null, KEYS.map(([keys, words]) => [h("dt", null, h("kbd", null, keys)), h("dd", null, words)])),
		h("form", { method: "dialog" }, h("button", null, "Close")));
	box.addEventListener("close", () => box.remove());
	document.body.append(box);
	box.showModal();
}

function toggleTheme() {
	const root = document.documentElement;
	const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
	root.dataset.theme = dark ? "light" : "dark";
	try {
		localStorage.setItem("theme", root.dataset.theme);
	} catch {
		// It is then forgotten with the page.
	}
}

function shiftTime(by) {
	const [from, to] = (state().time ?? "").split(",").map(Number);
	if (Number.isFinite(from) && Number.isFinite(to)) go({ time: `${from + by * (to - from)},${to + by * (to - from)}` });
}

function key(e) {
	if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
	const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName);
	if (e.key === "Escape" && typing) return e.target.blur();
	if (typing) return;
	const view = VIEWS[Number(e.key) - 1];
	if (view) go({ view: view[0], q: null, sort: null, zoom: null });
	else if (e.key === "/") {
		document.querySelector("input.search")?.focus();
		e.preventDefault();
	} else if (e.key === "?") help();
	else if (e.key === "t") toggleTheme();
	else if (e.key === "h") document.querySelector("button.hottest")?.click();
	else if (e.key === "x") clear();
	else if (e.key === "[") shiftTime(-1);
	else if (e.key === "]") shiftTime(1);
	else if (e.key === "r") {
		forget();
		forgetTimeline();
		draw();
	}
}

// Links inside the page do not load it again.
function click(e) {
	const link = e.target.closest?.("a[href^='/?']");
	if (!link || e.button || e.ctrlKey || e.metaKey || e.shiftKey) return;
	e.preventDefault();
	if (link.getAttribute("href") === location.pathname + location.search) return;
	history.pushState(null, "", link.getAttribute("href"));
	draw();
	document.getElementById("main").focus({ preventScroll: true });
	scrollTo(0, 0);
}

try {
	const theme = localStorage.getItem("theme");
	if (theme) document.documentElement.dataset.theme = theme;
} catch {
	// Without storage the system's choice holds.
}
document.addEventListener("keydown", key);
document.addEventListener("click", click);
onChange(draw);
report("databases").then((d) => {
	databases = d.databases;
	draw();
}, (error) => document.getElementById("main").replaceChildren(failure(error)));
