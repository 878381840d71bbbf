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
	const list = wanted && text ? find(rows, text, wanted) : rows.slice();
	const order = Uint32Array.from(list.keys());
	const compare = column && comparing(list, column, direction === "up" ? 1 : -1);
	const body = h("tbody");
	const element = h("table", { class: "report" },
		h("caption", { class: "unseen" }, caption),
		h("thead", null, h("tr", null, columns.map((c) => heading(c, key, direction)))), body);
	const wrap = h("div", { class: "scroll" }, element);
	let shown = 0;
	const more = () => {
		const until = Math.min(list.length, shown + ROWS_AT_ONCE);
		if (compare) arrange(order, shown, until, compare);
		for (; shown < until; shown++) body.append(line(columns, list[order[shown]]));
		button.hidden = shown >= list.length;
		button.textContent = `Show more (${number(list.length - shown)} left)`;
	};
	const button = h("button", { class: "more", onclick: more });
	more();
	const words = wanted && text ? `${number(list.length)} of ${number(rows.length)} rows` : note;
	return h("div", null, words && h("p", { class: "note" }, words),
		list.length ? wrap : h("p", { class: "empty" }, "Nothing fits the filter."), button);
}

// ---- large tables: nothing is done for rows that nobody looks at ----

const texts = new WeakMap(); // what rows are searched by; a report's rows stay the same objects

function find(rows, text, wanted) {
	if (!texts.has(rows)) texts.set(rows, rows.map((r) => text(r).toLowerCase()));
	const all = texts.get(rows);
	return rows.filter((_, i) => all[i].includes(wanted));
}

// Rows by their numbers: by the column, and among equals as they came.
function comparing(list, column, sign) {
	const values = list.map(column.value);
	return (i, j) => {
		const x = values[i], y = values[j];
		if (typeof x === "string") return sign * (x < y ? -1 : x > y ? 1 : 0) || i - j;
		return sign * ((x ?? -1) - (y ?? -1)) || i - j;
	};
}

// Puts what belongs to [from, to) there, in order, when what is before is in place already: the rest
// is only divided (Hoare's selection).
function arrange(list, from, to, compare) {
	let low = from, high = list.length - 1;
	while (to < list.length && low < high) {
		const pivot = list[(low + high) >> 1];
		let i = low, j = high;
		while (i <= j) {
			while (compare(list[i], pivot) < 0) i++;
			while (compare(list[j], pivot) > 0) j--;
			if (i <= j) {
				const kept = list[i];
				list[i++] = list[j];
				list[j--] = kept;
			}
		}
		if (to <= j) high = j;
		else if (to >= i) low = i;
		else break;
	}
	list.subarray(from, to).sort(compare);
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
