// Where the time went.

import { report } from "./api.js";
import { h, base, empty, number, percent } from "./dom.js";
import { address, filters, go, procedureLink } from "./state.js";
import { bar, table } from "./table.js";

const BY = ["procedure", "image", "process", "thread", "comm", "line", "cgroup", "cpu"];

const NAMES = {
	procedure: [["procedure", (r) => (r.start ? h("a", { href: procedureLink(r) }, r.procedure) : r.procedure), (r) => r.procedure],
		["image", (r) => h("a", { href: address({ image: r.image }), title: r.image }, base(r.image)), (r) => base(r.image)]],
	image: [["image", (r) => h("a", { href: address({ image: r.image, by: null }) }, r.image ?? "(unknown)"), (r) => r.image ?? ""]],
	process: [["pid", (r) => r.pid, (r) => r.pid], ["process", (r) => r.process, (r) => r.process]],
	thread: [["tid", (r) => r.tid, (r) => r.tid], ["thread", (r) => r.thread, (r) => r.thread], ["process", (r) => r.process, (r) => r.process]],
	comm: [["process name", (r) => h("a", { href: address({ comm: r.comm, by: null }) }, r.comm), (r) => r.comm]],
	line: [["line", (r) => (r.file ? `${r.file}:${r.line}` : r.reason), (r) => r.file ?? ""], ["image", (r) => base(r.image), (r) => base(r.image)]],
	cgroup: [["cgroup", (r) => r.cgroup ?? "(unknown)", (r) => r.cgroup ?? ""]],
	cpu: [["cpu", (r) => r.cpu, (r) => r.cpu]],
};

const joined = new WeakMap(); // by the report: views come back to it

// One row for each thing, with the counts of all events.
function join(rows, events) {
	if (joined.has(rows)) return joined.get(rows);
	const things = new Map();
	for (const row of rows) {
		const { event, samples, share, cumulative, ...rest } = row;
		const key = events.length > 1 ? JSON.stringify({ ...rest, inclusive: undefined, with_callees: undefined }) : things.size;
		if (!things.has(key)) things.set(key, { ...rest, samples: {}, share: {} });
		things.get(key).samples[event ?? events[0]] = samples;
		things.get(key).share[event ?? events[0]] = share;
	}
	const list = [...things.values()];
	joined.set(rows, list);
	return list;
}

export async function top(s) {
	const by = BY.includes(s.by) ? s.by : "procedure";
	const children = s.children && by === "procedure";
	const data = await report("top", { ...filters(s), by, children: children ? 1 : null,
		proc: by === "procedure" || by === "line" ? s.proc : null });
	const events = data.events.map((e) => e.name);
	if (children && !events.length) events.push(data.metric);
	const rows = join(data.rows, events);
	const names = NAMES[by];
	const columns = [
		...(children ? [{ key: "all", title: "with callees", value: (r) => r.with_callees, cell: (r) => percent(r.with_callees) }] : []),
		...events.flatMap((event) => [
			{ key: event, title: event, value: (r) => r.samples[event] ?? 0, cell: (r) => number(r.samples[event] ?? 0) },
			{ key: `${event}%`, title: "%", cell: (r) => [bar(r.share[event] ?? 0), " ", percent(r.share[event] ?? 0)] }]),
		...names.map(([title, cell, value], i) => ({ key: title, title, left: true, head: !i, value, cell })),
	];
	const controls = h("p", null, h("label", null, "by ", h("select", { onchange: (e) => go({ by: e.target.value, sort: null, children: null }) },
		BY.map((b) => h("option", { value: b, selected: b === by }, b)))), " ",
	by === "procedure" && h("label", null, h("input", { type: "checkbox", checked: Boolean(children),
		onchange: (e) => go({ children: e.target.checked ? 1 : null, sort: null }) }), " with callees "), " ",
	h("label", null, "search ", h("input", { class: "search", value: s.q ?? "", onchange: (e) => go({ q: e.target.value }) })));
	if (!rows.length)
		return [controls, empty("No samples in what is selected. ", "Paths, values and streams may still have something.")];
	return [controls, table({ columns, rows, caption: `Samples by ${by}`, sort: children ? "all:down" : `${events[0]}:down`,
		text: (r) => names.map(([, , value]) => value(r)).join(" "), note: `${number(rows.length)} rows` })];
}
