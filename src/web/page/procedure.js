// One procedure: its source and code with samples, stalls and culprits, values, hot paths, its graph.

import { report } from "./api.js";
import { h, base, empty, failure, number, percent, short } from "./dom.js";
import { filters, go } from "./state.js";
import { graph } from "./graph.js";
import { summary } from "./why.js";

const optional = (promise) => promise.catch((error) => ({ error }));

export async function procedure(s) {
	const choice = h("p", null, h("label", null, "procedure ", h("input", { class: "search", value: s.procedure ?? "", size: 50,
		placeholder: "a name, a glob, or image!0xstart", onchange: (e) => go({ procedure: e.target.value.trim(), path: null }) })));
	if (!s.procedure) return [choice, empty("Name a procedure, or click one in Top or Calls.")];
	const asked = { ...filters(s), proc: null, procedure: s.procedure };
	const [list, cause, seen, ways] = await Promise.all([optional(report("list", asked)), optional(report("why", asked)),
		optional(report("values", { ...asked, rows: 500 })), optional(report("paths", { ...asked, "min-share": "0" }))]);
	const code = cause.error ? list : cause;
	// Counted paths can be shown where nothing was sampled.
	if (list.error && cause.error && !(ways.rows?.length)) return [choice, failure(list.error)];
	return [choice, head(list.error ? ways.rows[0] : list, cause), controls(s), ...await body(s, { list, cause, seen, ways, code, asked })];
}

function head(list, cause) {
	return h("div", null, h("h2", null, list.procedure), h("p", { class: "note" }, `${list.image} at ${list.start}`,
		list.events ? ` · ${list.events.map((e) => `${number(e.samples)} ${e.name}`).join(", ")}` : "",
		cause.error ? "" : ` · counts ${cause.scale}${cause.actual_cpi ? `, CPI ${cause.actual_cpi.toFixed(2)}` : ""}${cause.best_cpi ? `, best ${cause.best_cpi.toFixed(2)}` : ""}`),
	cause.error ? h("p", { class: "note" }, cause.error.message) : summary(cause.summary));
}

const PARTS = [["code", "code"], ["graph", "control-flow graph"], ["ways", "hot paths"]];

const controls = (s) => h("p", null, PARTS.map(([name, title]) => h("label", null,
	h("input", { type: "radio", name: "part", checked: (s.part ?? "code") === name, onchange: () => go({ part: name === "code" ? null : name }) }), ` ${title} `)),
h("label", null, "syntax ", h("select", { onchange: (e) => go({ syntax: e.target.value === "att" ? null : e.target.value }) },
	["att", "intel"].map((x) => h("option", { value: x, selected: x === s.syntax }, x)))));

async function body(s, data) {
	if (s.part === "graph") return [await pathChoice(s, data), await graph(data.asked, chosenPath(s, data))];
	if (s.part === "ways") return [pathTable(s, data)];
	if (data.list.error) return [failure(data.list.error)];
	const source = sourceColumn(data.list);
	return [h("div", { class: source ? "split" : "" }, source, codeColumn(data))];
}

// ---- source ----

function sourceColumn(list) {
	const lines = new Map();
	for (const l of list.lines) {
		if (!l.file) continue;
		const key = `${l.file}:${l.line}`;
		const to = lines.get(key) ?? { file: l.file, line: l.line, text: l.source, samples: 0 };
		to.samples += l.samples;
		lines.set(key, to);
	}
	if (!lines.size) return null;
	const sorted = [...lines.values()].sort((a, b) => a.file.localeCompare(b.file) || a.line - b.line);
	const most = Math.max(1, ...sorted.map((l) => l.samples));
	let file = null;
	return h("div", { class: "scroll" }, h("h3", null, "source"), h("table", { class: "listing" }, h("tbody", null, sorted.flatMap((l) => {
		const rows = l.file === file ? [] : [h("tr", null, h("td", { colspan: 3, class: "dim" }, l.file))];
		file = l.file;
		return [...rows, h("tr", { "data-line": `${l.file}:${l.line}`, style: heat(l.samples / most),
			onclick: () => mark(`[data-source="${CSS.escape(`${l.file}:${l.line}`)}"]`) },
		h("td", { class: "n" }, l.samples || ""), h("td", { class: "n" }, l.line), h("td", null, l.text))];
	}))));
}

const heat = (share) => ({ background: share > 0.005 ? `rgba(var(--heat), ${0.08 + 0.42 * share})` : "" });

function mark(selector) {
	document.querySelectorAll(".listing .selected").forEach((e) => e.classList.remove("selected"));
	const found = document.querySelectorAll(selector);
	found.forEach((e) => e.classList.add("selected"));
	found[0]?.scrollIntoView({ block: "center" });
}

// ---- code ----

function byAddress(list, cause, seen) {
	const lines = new Map(list.lines.map((l) => [l.address, { ...l }]));
	if (!cause.error)
		for (const block of cause.blocks)
			block.instructions.forEach((i, k) => lines.set(i.address, { ...lines.get(i.address), ...i, head: k ? null : block }));
	for (const row of seen.rows ?? []) {
		const line = lines.get(row.address);
		if (line && (row.telling || row.advice || row.kind === "target")) (line.values ??= []).push(row);
	}
	return [...lines.values()].sort((a, b) => Number(a.address) - Number(b.address));
}

const culprits = (stalls) => stalls.map((x) => `${x.culprit} ${percent(x.min, 0)}${x.max > x.min ? ` to ${percent(x.max, 0)}` : ""}${x.from?.length ? ` from ${x.from.join(", ")}` : ""}`).join("; ");

const sees = (row) => `${row.operand}: ${row.values.slice(0, 3).map((v) => `${v.value} ${percent(v.share, 0)}`).join(", ")}${row.advice ? ` — ${row.advice}` : ""}`;

function codeColumn({ list, cause, seen }) {
	const lines = byAddress(list, cause, seen);
	const most = Math.max(1, ...lines.map((l) => l.samples ?? 0));
	const known = !cause.error;
	const hottest = lines.reduce((a, b) => ((b.samples ?? 0) > (a?.samples ?? 0) ? b : a), null);
	return h("div", { class: "scroll" }, h("h3", null, "code ", hottest && h("button", { class: "hottest",
		onclick: () => mark(`#${CSS.escape(`i${hottest.address}`)}`) }, "Go to the hottest (h)")), h("table", { class: "listing" },
		h("thead", null, h("tr", null, ["samples", known && "count", known && "CPI", "address", "instruction"].filter(Boolean)
			.map((t) => h("th", { scope: "col", class: "dim" }, t)))),
		h("tbody", null, lines.flatMap((l) => codeRows(l, most, known)))));
}

function codeRows(l, most, known) {
	const rows = [];
	const wide = known ? 5 : 3;
	if (l.stalls?.length) rows.push(h("tr", { class: "bubble" }, h("td", { colspan: wide }, `● stalled: ${culprits(l.stalls)}`)));
	rows.push(h("tr", { id: `i${l.address}`, class: l.head ? "block" : "", "data-source": l.file ? `${l.file}:${l.line}` : null, style: heat((l.samples ?? 0) / most),
		onclick: () => l.file && mark(`[data-line="${CSS.escape(`${l.file}:${l.line}`)}"]`) },
	h("td", { class: "n" }, l.samples ? number(l.samples) : ""),
	known && h("td", { class: "n", title: l.head ? `confidence ${l.head.confidence}` : null }, l.head ? short(l.count) : ""),
	known && h("td", { class: "n" }, l.cpi ? l.cpi.toFixed(2) : ""),
	h("td", { class: "n" }, l.address.replace("0x", "")), h("td", null, l.text ?? "")));
	for (const v of l.values ?? []) rows.push(h("tr", null, h("td", { colspan: wide - 1 }), h("td", { class: "says" }, sees(v))));
	return rows;
}

// ---- paths ----

const chosenPath = (s, { ways }) => (ways.rows ?? []).find((r) => String(r.path) === s.path) ?? null;

async function pathChoice(s, { ways }) {
	if (!ways.rows?.length) return h("p", { class: "note" }, "No paths were counted here ('culprit record --paths').");
	return h("p", null, h("label", null, "draw path ", h("select", { onchange: (e) => go({ path: e.target.value }) },
		h("option", { value: "" }, "none"), ways.rows.slice(0, 50).map((r) =>
			h("option", { value: r.path, selected: String(r.path) === s.path }, `${r.path}: ${percent(r.share, 1)}, ${short(r.count)} times`)))));
}

function pathTable(s, { ways }) {
	if (ways.error) return failure(ways.error);
	if (!ways.rows.length) return empty("No path of this procedure was counted. 'culprit record --paths -- COMMAND' does.");
	return h("div", { class: "scroll" }, h("table", { class: "report" }, h("caption", { class: "unseen" }, "Hot paths"),
		h("thead", null, h("tr", null, ["path", "times", "share", "begins", "ends", "blocks"].map((t) => h("th", { scope: "col" }, t)))),
		h("tbody", null, ways.rows.slice(0, 200).map((r) => h("tr", null,
			h("th", { scope: "row" }, h("a", { href: "#", onclick: (e) => {
				e.preventDefault();
				go({ part: "graph", path: r.path });
			} }, r.path)), h("td", null, number(r.count)), h("td", null, percent(r.share)), h("td", null, r.begins), h("td", null, r.ends),
			h("td", { class: "left wrap" }, h("code", null, r.blocks.map((b) => b.replace("0x", "")).join(" → ")), r.lines ? ` ${base(String(r.lines))}` : ""))))));
}
