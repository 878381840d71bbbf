// The control-flow graph, as 'culprit cfg' draws it, with a hot path on top.

import { report } from "./api.js";
import { failure, h } from "./dom.js";

const ALLOWED = new Set(["svg", "g", "title", "polygon", "path", "text", "ellipse", "polyline", "tspan"]);
const ATTRIBUTES = /^(id|class|points|d|x|y|cx|cy|rx|ry|fill|stroke|stroke-width|stroke-dasharray|text-anchor|font-family|font-size|transform|width|height|viewBox)$/;
const SVG = "http://www.w3.org/2000/svg";

// A copy of what a picture may have; anything else is left out.
function copy(from) {
	if (from.nodeType === Node.TEXT_NODE) return document.createTextNode(from.data);
	if (from.nodeType !== Node.ELEMENT_NODE || !ALLOWED.has(from.localName)) return null;
	const to = document.createElementNS(SVG, from.localName);
	for (const { name, value } of from.attributes) if (ATTRIBUTES.test(name)) to.setAttribute(name, value);
	for (const child of from.childNodes) {
		const made = copy(child);
		if (made) to.append(made);
	}
	return to;
}

function trace(picture, path) {
	const on = (id) => picture.querySelector(`#${CSS.escape(id)}`)?.classList.add("on-path");
	path.blocks.forEach((block, i) => {
		on(`block-${block}`);
		const next = path.blocks[i + 1] ?? path.next;
		if (next) on(`edge-${block}-${next}`);
	});
}

export async function graph(asked, path) {
	let text;
	try {
		text = await report("cfg", asked);
	} catch (error) {
		return failure(error);
	}
	const parsed = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
	const picture = copy(parsed);
	if (!picture) return failure(new Error("The picture could not be read."));
	if (path) trace(picture, path);
	picture.setAttribute("role", "img");
	picture.setAttribute("aria-label", `Control-flow graph of ${asked.procedure}`);
	const place = h("div", { class: "graph fit", tabindex: 0 }, picture);
	return h("div", null, h("p", null, h("label", null, h("input", { type: "checkbox", checked: true,
		onchange: (e) => place.classList.toggle("fit", e.target.checked) }), " fit to the page")), place);
}
