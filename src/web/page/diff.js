// What changed between two databases or epochs, what is significant first.

import { report } from "./api.js";
import { h, base, empty, number, percent } from "./dom.js";
import { go } from "./state.js";
import { table } from "./table.js";

async function choices() {
	const { databases } = await report("databases");
	const lists = await Promise.all(databases.map((d, i) => report("epochs", { db: i }).catch(() => ({ epochs: [] }))));
	return databases.flatMap((d, i) => [{ key: `${i}`, words: `${base(d)}: all` },
		...lists[i].epochs.filter((e) => e.samples > 0).map((e) => ({ key: `${i}:${e.id}`, words: `${base(d)}: epoch ${e.id}, ${new Date(1000 * e.started).toLocaleString("sv")}, ${number(e.samples)} samples` }))]);
}

const side = (name, s, list) => h("label", null, `${name} `, h("select", { onchange: (e) => go({ [name]: e.target.value }) },
	h("option", { value: "" }, "choose"), list.map((c) => h("option", { value: c.key, selected: c.key === s[name] }, c.words))));

export async function diff(s) {
	const list = await choices();
	const controls = h("p", null, side("before", s, list), " ", side("after", s, list), " ",
		h("label", null, "by ", h("select", { onchange: (e) => go({ measure: e.target.value === "time" ? null : e.target.value }) },
			["time", "share"].map((m) => h("option", { value: m, selected: m === s.measure }, m)))), " ",
		h("label", null, "search ", h("input", { class: "search", value: s.q ?? "", onchange: (e) => go({ q: e.target.value }) })));
	if (!s.before || !s.after) return [controls, empty("Choose two runs: what comes before, and what after. Several databases can be given to 'culprit serve'.")];
	const [before, beforeEpochs] = s.before.split(":"), [after, afterEpochs] = s.after.split(":");
	const data = await report("diff", { before, "before-epochs": beforeEpochs, after, "after-epochs": afterEpochs, by: s.measure, event: s.event });
	if (!data.rows.length) return [controls, empty("Nothing was sampled in either.")];
	const amount = (x) => (x === null ? "" : s.measure === "share" ? percent(x) : x < 1e4 && x % 1 ? x.toPrecision(4) : number(x));
	return [controls, table({ caption: "Changes by procedure", rows: data.rows.map((r) => ({ ...r, weight: (r.significant ? 1e12 : 0) + Math.abs(r.change ?? 0) })), sort: "weight:down",
		text: (r) => `${r.procedure} ${r.image}`, note: `${data.rows.filter((r) => r.significant).length} changes are significant`,
		columns: [
			{ key: "weight", title: "significant", value: (r) => r.weight, cell: (r) => (r.significant ? "yes" : "") },
			{ key: "before", title: "before", value: (r) => r.before, cell: (r) => amount(r.before) },
			{ key: "after", title: "after", value: (r) => r.after, cell: (r) => amount(r.after) },
			{ key: "change", title: "change", value: (r) => r.change, cell: (r) => h("span", { class: r.significant ? (r.change > 0 ? "up" : "down") : "dim" }, r.change > 0 ? "+" : "", amount(r.change)) },
			{ key: "range", title: "95% between", cell: (r) => `${amount(r.low)} and ${amount(r.high)}` },
			{ key: "procedure", title: "procedure", left: true, head: true, value: (r) => r.procedure, cell: (r) => r.procedure },
			{ key: "image", title: "image", left: true, value: (r) => base(r.image), cell: (r) => base(r.image) },
		] })];
}
