// Calling contexts: from the roots, from the leaves, or around one procedure.

import { report } from "./api.js";
import { h, base, empty, number, percent } from "./dom.js";
import { filters, go, nameOf } from "./state.js";
import { Contexts } from "./tree.js";
import { flame } from "./flame.js";

const WAYS = [["down", "from the roots"], ["up", "from the leaves"], ["sandwich", "around a procedure"]];
let last = null; // the contexts that were read last: links between views come back to them

async function contexts(s) {
	const asked = { ...filters(s), metric: s.metric, proc: null };
	const data = await report("calls", asked);
	if (last?.data !== data) last = { data, tree: new Contexts(data) };
	return last;
}

// The procedures whose names have the text.
function search(tree, text) {
	const wanted = text.toLowerCase(), set = new Uint8Array(tree.procedures.length);
	tree.procedures.forEach((p, i) => (set[i] = p.name.toLowerCase().includes(wanted)));
	return (p) => set[p];
}

function controls(s, way, data, share) {
	return [h("p", null,
		WAYS.map(([name, title]) => h("label", null, h("input", { type: "radio", name: "way", checked: name === way,
			onchange: () => go({ way: name === "down" ? null : name, zoom: null }) }), ` ${title} `)),
		h("label", null, "search ", h("input", { class: "search", value: s.q ?? "", onchange: (e) => go({ q: e.target.value }) })),
		share !== null && h("span", null, ` ${percent(share)} is in what was found`)),
	h("p", { class: "note" }, `${number(data.total)} ${data.metric}${data.event ? ` of ${data.event}` : ", counted"}. `,
		data.event && data.precision !== null ? `Of the stacks looked at at random ${percent(data.precision, 1)} had been named right. ` : "",
		"Hatched boxes: the likeliest of several paths; grey ones: unknown.")];
}

export async function calls(s) {
	const { data, tree } = await contexts(s);
	if (!tree.size) return empty("No calling contexts. 'culprit record -g' samples them, 'culprit record --context' counts them.");
	const way = WAYS.some(([name]) => name === s.way) ? s.way : "down";
	const found = s.q && search(tree, s.q);
	const common = {
		tree, found, zoom: (s.zoom ?? "").split(".").filter(Boolean).map(Number),
		onzoom: (to) => go({ zoom: to.join(".") }),
		onopen: (p) => go({ view: "procedure", procedure: nameOf(tree.procedures[p]), q: null, zoom: null }),
	};
	const head = controls(s, way, data, found ? tree.share(found) : null);
	if (way === "sandwich") return [...head, ...sandwich(s, tree, common)];
	const root = way === "up" ? (tree.up ??= tree.bottomUp()) : (tree.down ??= tree.topDown());
	return [...head, flame({ ...common, root, label: `Flame graph ${way === "up" ? "from the leaves" : "from the roots"}` })];
}

function sandwich(s, tree, common) {
	const sums = new Float64Array(tree.procedures.length);
	for (let i = 0; i < tree.size; i++) sums[tree.procedure[i]] += tree.own[i];
	const order = [...sums.keys()].sort((a, b) => sums[b] - sums[a]);
	const chosen = s.around ? tree.procedures.findIndex((p) => nameOf(p) === s.around) : order[0];
	const choice = h("p", null, h("label", null, "procedure ", h("input", { list: "procedures", value: chosen < 0 ? s.around : tree.name(chosen),
		onchange: (e) => {
			const p = tree.procedures.find((x) => x.name === e.target.value);
			go({ around: p ? nameOf(p) : e.target.value, zoom: null });
		} })),
	h("datalist", { id: "procedures" }, order.slice(0, 500).map((p) => h("option", { value: tree.name(p) }))));
	if (chosen < 0) return [choice, empty(`${s.around} is in no context of what is selected.`)];
	const callers = tree.callers(chosen), callees = tree.callees(chosen);
	const onzoom = (way, node) => node && go({ around: nameOf(tree.procedures[node.procedure]) });
	return [choice, h("h2", null, `${tree.name(chosen)} · ${base(tree.procedures[chosen].image)} · ${percent(callees.weight / tree.total)} with callees`),
		h("h3", null, "who called it"), flame({ ...common, zoom: [], onzoom, root: callers, up: true, label: "callers" }),
		h("h3", null, "what it called"), flame({ ...common, zoom: [], onzoom, root: callees, label: "callees" })];
}
