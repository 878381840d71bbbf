// Where the cycles of all that is selected went: the program's summary, and the worst instructions.

import { report } from "./api.js";
import { h, base, empty, number, percent } from "./dom.js";
import { filters, procedureLink } from "./state.js";
import { table } from "./table.js";

const COLOURS = ["#3a7d44", "#6b8f3a", "#b3312c", "#d1603d", "#e08e45", "#5b6fa8", "#8a5a99", "#3d8a99", "#99803d", "#a84b78"];

// Everything adds up to the whole: execution, static stalls, dynamic ones by their middle, the rest.
export function summary(sum) {
	const parts = [["execution", sum.execution, null],
		...sum.static.map((x) => [`${x.cause} (static)`, x.share, null]),
		...sum.dynamic.map((x) => [x.culprit, (x.min + x.max) / 2, x]),
		["unexplained", sum.unexplained, null], ["sampling error", sum.sampling_error, null]].filter(([, share]) => share > 0.0005);
	const whole = parts.reduce((a, [, share]) => a + share, 0) || 1;
	return h("div", null,
		h("div", { class: "stack", role: "img", "aria-label": parts.map(([name, share]) => `${name} ${percent(share, 1)}`).join(", ") },
			parts.map(([name, share], i) => h("span", { title: `${name} ${percent(share, 1)}`,
				style: { width: `${(100 * share) / whole}%`, background: COLOURS[i % COLOURS.length] } }))),
		h("p", { class: "legend" }, parts.map(([name, share, range], i) => h("span", null,
			h("span", { class: "swatch", style: { background: COLOURS[i % COLOURS.length] } }),
			`${name} ${range && range.max - range.min > 0.001 ? `${percent(range.min, 1)} to ${percent(range.max, 1)}` : percent(share, 1)}`))));
}

export async function why(s) {
	const data = await report("why", { ...filters(s), rows: 100 });
	const rows = data.instructions ?? data.rows ?? data.worst ?? [];
	const head = [h("h2", null, "Where the cycles went"),
		h("p", { class: "note" }, `${number(data.samples)} samples of ${data.event} in ${number(data.procedures)} procedures; `,
			`${percent(data.known, 1)} of them where it is known how often code ran, ${percent(data.relative, 1)} where only relative counts are; model: ${data.machine}.`)];
	if (!data.samples) return [...head, empty("No samples of time in what is selected.")];
	const parts = [data.summary, data.relative_summary].filter((x) => x && (x.execution || x.dynamic_total));
	return [...head, ...parts.map((x, i) => [i || parts.length === 1 && data.known < 0.5 ? h("h3", null, "where counts are relative") : null, summary(x)]).flat().filter(Boolean),
		rows.length ? h("h2", null, "The worst instructions") : null, rows.length ? table({ caption: "Instructions with the longest stalls", rows, sort: "samples:down",
			text: (r) => `${r.procedure} ${r.text ?? r.instruction}`,
			columns: [
				{ key: "samples", title: "samples", value: (r) => r.samples, cell: (r) => number(r.samples) },
				{ key: "cpi", title: "CPI", value: (r) => r.cpi, cell: (r) => (r.cpi === null || r.cpi === undefined ? "" : r.cpi.toFixed(2)) },
				{ key: "procedure", title: "procedure", left: true, head: true, value: (r) => r.procedure, cell: (r) => h("a", { href: procedureLink(r) }, r.procedure) },
				{ key: "address", title: "address", left: true, cell: (r) => h("code", null, r.address) },
				{ key: "text", title: "instruction", left: true, cell: (r) => h("code", null, r.text ?? r.instruction) },
				{ key: "culprits", title: "culprits", left: true, cell: (r) => (r.stalls ?? []).map((x) => x.culprit).join(", ") },
				{ key: "image", title: "image", left: true, cell: (r) => base(r.image) },
			] }) : null].filter(Boolean);
}
