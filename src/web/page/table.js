// Tables that can be sorted and filtered, drawn only as far as they are looked at.

import { h, number } from "./dom.js";
import { go, state } from "./state.js";

const ROWS_AT_ONCE = 200;

// columns: [{ key, title, left, value(row) for sorting, cell(row), hint }]
export function table({ columns, rows, caption, sort, text, note }) {
	const s = state();
	const [key, direction] = (s.sort ?? sort ?? "").split(":");
	const column = columns.find((c) => c.key === key);
	const wanted = (s.q ?? "").toLowerCase();
	let list = wanted && text ? rows.filter((r) => text(r).toLowerCase().includes(wanted)) : rows.slice();
	if (column) {
		const sign = direction === "up" ? 1 : -1;
		list.sort((a, b) => {
			const x = column.value(a), y = column.value(b);
			return sign * (typeof x === "string" ? String(x).localeCompare(String(y)) : (x ?? -1) - (y ?? -1));
		});
	}
	const body = h("tbody");
	const element = h("table", { class: "report" },
		h("caption", { class: "unseen" }, caption),
		h("thead", null, h("tr", null, columns.map((c) => heading(c, key, direction)))), body);
	const wrap = h("div", { class: "scroll" }, element);
	let shown = 0;
	const more = () => {
		const until = Math.min(list.length, shown + ROWS_AT_ONCE);
		for (; shown < until; shown++) body.append(line(columns, list[shown]));
		button.hidden = shown >= list.length;
		button.textContent = `Show more (${number(list.length - shown)} left)`;
	};
	const button = h("button", { class: "more", onclick: more });
	more();
	const words = wanted && text ? `${number(list.length)} of ${number(rows.length)} rows` : note;
	return h("div", null, words && h("p", { class: "note" }, words),
		list.length ? wrap : h("p", { class: "empty" }, "Nothing fits the filter."), button);
}

function heading(c, key, direction) {
	const sorted = c.key === key;
	const next = sorted && direction !== "up" ? "up" : "down";
	return h("th", { scope: "col", class: c.left ? "left" : "", title: c.hint,
		"aria-sort": sorted ? (direction === "up" ? "ascending" : "descending") : "none" },
	c.value ? h("button", { class: "sort", onclick: () => go({ sort: `${c.key}:${next}` }) },
		c.title, h("span", { "aria-hidden": "true" }, sorted ? (direction === "up" ? " ▲" : " ▼") : "")) : c.title);
}

const line = (columns, row) => h("tr", null,
	columns.map((c) => h(c.head ? "th" : "td", { class: c.left ? "left" : "", scope: c.head ? "row" : null }, c.cell(row))));

export const bar = (share) => h("span", { class: "bar", "aria-hidden": "true" },
	h("span", { style: { width: `${Math.min(100, 100 * share)}%` } }));
