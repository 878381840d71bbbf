// Samples over time by image. A range that is brushed selects that time in every view.

import { report } from "./api.js";
import { h, base, clock, hue, number, percent } from "./dom.js";
import { filters, go, state } from "./state.js";

const HEIGHT = 64, SLICES = 200;
const SVG = "http://www.w3.org/2000/svg";

function s(tag, attributes) {
	const element = document.createElementNS(SVG, tag);
	for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
	return element;
}

const colour = (part) => (part.name ? `hsl(${hue(part.name)} 55% 55%)` : "#999");

let drawn = null; // what is on the page
export const forgetTimeline = () => (drawn = null);

export async function drawTimeline(place) {
	const selected = state().time, asked = JSON.stringify(filters());
	if (asked === drawn) return;
	drawn = asked;
	let data;
	try {
		// All of the time, also when a part of it is selected.
		data = await report("timeline", { ...filters(), time: null, proc: null, slices: SLICES });
	} catch {
		place.replaceChildren();
		return;
	}
	if (!data.rows.length) {
		place.replaceChildren(h("p", { class: "note" }, "No samples in what is selected; exact counts, paths and bursts have no times."));
		return;
	}
	const from = data.rows[0].from, to = data.rows.at(-1).to;
	const picture = draw(data, from, to, selected);
	brush(picture, from, to);
	place.replaceChildren(picture, legend(data, from, to));
}

function draw({ rows, parts }, from, to, selected) {
	const most = Math.max(...rows.map((r) => r.samples), 1e-9);
	const picture = s("svg", { class: "timeline", viewBox: `0 0 ${rows.length} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
		tabindex: 0, "aria-label": `Samples from ${clock(from, true)} to ${clock(to, true)}. Drag to select a time; Escape selects all.` });
	rows.forEach((row, i) => {
		let y = HEIGHT;
		row.parts.forEach((weight, p) => {
			const height = ((HEIGHT - 4) * weight) / most;
			if (height < 0.05) return;
			y -= height;
			picture.append(s("rect", { x: i, y, width: 1.02, height, fill: colour(parts[p]) }));
		});
	});
	if (selected) {
		const [a, b] = selected.split(",").map((t) => (rows.length * (Number(t) - from)) / (to - from));
		if (Number.isFinite(a) && Number.isFinite(b)) {
			picture.append(s("rect", { x: 0, y: 0, width: Math.max(0, a), height: HEIGHT, fill: "rgba(128,128,128,.45)" }));
			picture.append(s("rect", { x: b, y: 0, width: Math.max(0, rows.length - b), height: HEIGHT, fill: "rgba(128,128,128,.45)" }));
		}
	}
	return picture;
}

function brush(picture, from, to) {
	let begin = null, shade = null;
	const at = (e) => {
		const box = picture.getBoundingClientRect();
		return Math.max(0, Math.min(1, (e.clientX - box.left) / box.width));
	};
	picture.addEventListener("pointerdown", (e) => {
		begin = at(e);
		shade = s("rect", { y: 0, height: HEIGHT, fill: "rgba(255,220,90,.45)" });
		picture.append(shade);
		picture.setPointerCapture(e.pointerId);
	});
	picture.addEventListener("pointermove", (e) => {
		if (begin === null) return;
		shade.setAttribute("x", SLICES * Math.min(begin, at(e)));
		shade.setAttribute("width", SLICES * Math.abs(begin - at(e)));
	});
	picture.addEventListener("pointerup", (e) => {
		const end = at(e), low = Math.min(begin, end), high = Math.max(begin, end);
		begin = null;
		shade.remove();
		if (high - low < 0.004) go({ time: null });
		else go({ time: [low, high].map((x) => (from + x * (to - from)).toFixed(3)).join(",") });
	});
	picture.addEventListener("keydown", (e) => e.key === "Escape" && go({ time: null }));
}

const legend = ({ parts }, from, to) => h("div", { class: "legend" },
	h("span", null, `${clock(from, true)} to ${clock(to, true)}`),
	parts.map((p) => h("span", { title: `${p.image ?? ""} ${number(p.samples)} samples` },
		h("span", { class: "swatch", style: { background: colour(p) } }), `${p.name ? base(p.name) : "others"} ${percent(p.share, 1)}`)));
