// Values, paths and streams: the reports as tables, with links to procedures.

import { report } from "./api.js";
import { h, base, empty, number, percent } from "./dom.js";
import { filters, go, procedureLink } from "./state.js";
import { bar, table } from "./table.js";

const KINDS = ["", "result", "source", "address", "stride", "latency", "conflict", "float", "length", "entry", "target", "plugin"];

const procedureColumn = { key: "procedure", title: "procedure", left: true, head: true, value: (r) => r.procedure,
	cell: (r) => h("a", { href: procedureLink(r) }, r.procedure) };
const imageColumn = { key: "image", title: "image", left: true, value: (r) => base(r.image), cell: (r) => base(r.image) };

const search = (s) => h("label", null, "search ", h("input", { class: "search", value: s.q ?? "", onchange: (e) => go({ q: e.target.value }) }));

export async function values(s) {
	const data = await report("values", { ...filters(s), kind: s.kind, rows: 1000 });
	const controls = h("p", null, h("label", null, "kind ", h("select", { onchange: (e) => go({ kind: e.target.value }) },
		KINDS.map((k) => h("option", { value: k, selected: k === (s.kind ?? "") }, k || "all")))), " ", search(s));
	if (!data.rows.length) return [controls, empty("No values were kept. 'culprit record --values -- COMMAND' keeps them.")];
	return [controls, table({ caption: "Values that instructions see", rows: data.rows, sort: s.sort ? undefined : "",
		text: (r) => `${r.procedure} ${r.instruction} ${r.operand} ${r.advice ?? ""}`, note: `${number(data.rows.length)} rows, by time and how alike the values are`,
		columns: [
			{ key: "time", title: "time", value: (r) => r.time_share, cell: (r) => [bar(r.time_share ?? 0), " ", percent(r.time_share)] },
			{ key: "invariance", title: "alike", hint: "at least this share has the most frequent value", value: (r) => r.invariance, cell: (r) => percent(r.invariance, 0) },
			{ key: "samples", title: "seen", value: (r) => r.samples, cell: (r) => number(r.samples) },
			procedureColumn,
			{ key: "address", title: "at", left: true, cell: (r) => h("code", null, r.address) },
			{ key: "instruction", title: "instruction", left: true, cell: (r) => h("code", null, r.instruction) },
			{ key: "operand", title: "what", left: true, cell: (r) => r.operand },
			{ key: "values", title: "values (share ± error)", left: true, cell: (r) => r.values.slice(0, 3).map((v) => h("div", null, h("code", null, v.value), ` ${percent(v.share, 0)} ± ${percent(v.error, 0)}`)) },
			{ key: "advice", title: "what pays", left: true, value: (r) => r.advice ?? "", cell: (r) => r.advice ?? "" },
		] })];
}

export async function paths(s) {
	const data = await report("paths", { ...filters(s), "min-share": "0.001", rows: 1000 });
	if (!data.rows.length) return empty("No paths were counted. 'culprit record --paths -- COMMAND' counts them.");
	return [h("p", null, search(s)), h("p", { class: "note" }, `${number(data.paths)} paths ran. `,
		data.classes.map((c) => `${c.class}: ${number(c.paths)} with ${percent(c.share, 1)} of ${data.metric}. `)),
	table({ caption: "Hot paths inside procedures", rows: data.rows, sort: "share:down", text: (r) => r.procedure,
		columns: [
			{ key: "share", title: data.metric, value: (r) => r.share, cell: (r) => [bar(r.share), " ", percent(r.share)] },
			{ key: "count", title: "times", value: (r) => r.count, cell: (r) => number(r.count) },
			{ key: "class", title: "class", left: true, value: (r) => r.class, cell: (r) => r.class },
			procedureColumn,
			{ key: "path", title: "path", cell: (r) => h("a", { href: `${procedureLink(r)}&part=graph&path=${r.path}` }, r.path) },
			{ key: "blocks", title: "blocks", left: true, cell: (r) => h("code", null, r.blocks.slice(0, 12).map((b) => b.replace("0x", "")).join(" → "), r.blocks.length > 12 ? ` … ${r.blocks.length} in all` : "") },
			imageColumn,
		] })];
}

export async function streams(s) {
	const data = await report("streams", { ...filters(s), rows: 50 });
	if (!data.streams.length) return empty("No streams of data references. 'culprit record --bursts -- COMMAND' traces them.");
	return [h("p", { class: "note" }, `${number(data.references)} references; these streams have ${percent(data.coverage, 1)} of them.`),
		table({ caption: "Hot data streams", rows: data.streams, sort: "heat:down", columns: [
			{ key: "heat", title: "heat", value: (r) => r.heat, cell: (r) => [bar(r.heat / data.streams[0].heat), " ", number(r.heat)] },
			{ key: "length", title: "length", value: (r) => r.length, cell: (r) => number(r.length) },
			{ key: "occurrences", title: "times", value: (r) => r.occurrences, cell: (r) => number(r.occurrences) },
			{ key: "lines", title: "cache lines (least)", value: (r) => r.lines, cell: (r) => (r.lines === undefined ? "" : `${r.lines} (${r.least_lines})`) },
			{ key: "references", title: "references", left: true, head: true, cell: (r) => h("details", null, h("summary", null, r.references.slice(0, 3).map(words).join(" → "), " …"),
				h("ol", null, r.references.map((x) => h("li", null, h("code", null, `${x.kind ?? ""} `), words(x), h("span", { class: "dim" }, ` at ${x.pc} ${x.address ?? ""}`))))) },
		] })];
}

const words = (x) => x.object ?? x.what;
