// A flame graph of any tree whose nodes have procedure, weight, own, known and children (tree.js).

import { h, base, hue, number, percent } from "./dom.js";

const ROW = 19, LEAST = 3, DEEPEST = 400;

// What a box is: its node, the way to it, and where it is drawn.
function boxes(root, width) {
	const list = [];
	const place = (node, x, w, depth, way) => {
		const { children } = node;
		let at = x, rest = 0;
		if (depth > DEEPEST) return;
		for (let i = 0; i < children.length; i++) { // the heaviest first
			const cw = node.weight ? (w * children[i].weight) / node.weight : 0;
			if (cw < LEAST) {
				rest = children.length - i;
				break;
			}
			const box = { node: children[i], x: at, w: cw, depth, way: [...way, i] };
			list.push(box);
			place(children[i], at, cw, depth + 1, box.way);
			at += cw;
		}
		if (!rest) return;
		const weight = children.slice(-rest).reduce((sum, c) => sum + c.weight, 0);
		const cw = node.weight ? (w * weight) / node.weight : 0;
		if (cw >= LEAST) list.push({ x: at, w: cw, depth, way, rest, weight });
	};
	place(root, 0, width, 0, []);
	return list;
}

export function find(root, way) {
	let node = root;
	const above = [];
	for (const i of way) {
		if (!node.children[i]) break;
		node = node.children[i];
		above.push(node);
	}
	return { node, above };
}

// options: tree, root, zoom (a way), up (grow upwards), found(procedure), onzoom(way, node), onopen(procedure)
export function flame({ tree, root, zoom = [], up = false, found, onzoom, onopen, label }) {
	const { node, above } = find(root, zoom);
	const detail = h("p", { class: "detail", role: "status" }, hint(node, tree, zoom.length));
	const graph = h("div", { class: "flame", role: "tree", "aria-label": label, tabindex: 0 });
	let list = [], selected = -1;

	function paint() {
		const width = graph.clientWidth || 1000;
		const inner = boxes(node, width).map((b) => ({ ...b, depth: b.depth + above.length, way: [...zoom, ...b.way] }));
		list = [...above.map((a, i) => ({ node: a, x: 0, w: width, depth: i, way: zoom.slice(0, i + 1), above: true })), ...inner];
		const deepest = list.reduce((d, b) => Math.max(d, b.depth), 0) + 1;
		graph.style.height = `${deepest * ROW}px`;
		graph.replaceChildren(...list.map((b, i) => box(b, i, deepest)));
		graph.dataset.boxes = list.length;
	}

	function place(b, deepest) {
		return { left: `${b.x}px`, width: `${Math.max(1, b.w)}px`, top: `${(up ? deepest - 1 - b.depth : b.depth) * ROW}px` };
	}

	function box(b, i, deepest) {
		if (b.rest)
			return h("div", { class: "rest", title: `${number(b.rest)} more, ${percent(b.weight / tree.total)}`, style: place(b, deepest) },
				b.w > 60 ? `… ${number(b.rest)} more` : "");
		const name = tree.name(b.node.procedure);
		const word = tree.knownWords[b.node.known];
		return h("div", { role: "treeitem", "data-i": i, "aria-level": b.depth + 1, "aria-label": `${name}, ${percent(b.node.weight / tree.total)}`,
			class: [b.above && "above", (word === "ranked" || word === "unknown") && word, found?.(b.node.procedure) && "found"].filter(Boolean).join(" "),
			style: { ...place(b, deepest), backgroundColor: `hsl(${hue(base(tree.procedures[b.node.procedure].image))} 70% ${68 + (hue(name) % 12)}%)` } },
		b.w > 30 ? name : "");
	}

	function select(i) {
		graph.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
		selected = i;
		const element = graph.children[i];
		if (!element) return;
		element.setAttribute("aria-selected", "true");
		element.scrollIntoView({ block: "nearest" });
		tell(list[i]);
	}

	const tell = (b) => detail.replaceChildren(...describe(b.node, tree), " ",
		h("button", { onclick: () => onopen(b.node.procedure) }, "Open procedure"));

	const same = (a, b) => a.length === b.length && a.every((x, i) => x === b[i]);
	const at = (way) => list.findIndex((b) => !b.rest && same(b.way, way));

	function key(e) {
		const b = list[selected];
		const moves = {
			ArrowDown: () => (up ? parent() : child()), ArrowUp: () => (up ? child() : parent()),
			ArrowLeft: () => at([...b.way.slice(0, -1), b.way.at(-1) - 1]), ArrowRight: () => at([...b.way.slice(0, -1), b.way.at(-1) + 1]),
		};
		const parent = () => at(b.way.slice(0, -1));
		const child = () => at([...b.way, 0]);
		if (e.key === "Escape") onzoom(zoom.slice(0, -1));
		else if (e.key === "Enter" && b) onzoom(b.way, b.node);
		else if (e.key === "o" && b) onopen(b.node.procedure);
		else if (moves[e.key]) {
			const to = b ? moves[e.key]() : 0;
			if (to >= 0) select(to);
			e.preventDefault();
		}
	}

	graph.addEventListener("keydown", key);
	graph.addEventListener("click", (e) => {
		const b = list[e.target.dataset.i];
		if (b) onzoom(b.way, b.node);
	});
	graph.addEventListener("mouseover", (e) => e.target.dataset.i && tell(list[e.target.dataset.i]));
	const observer = new ResizeObserver(() => graph.isConnected && paint());
	observer.observe(graph);
	requestAnimationFrame(paint);
	return h("div", null, detail, graph);
}

const hint = (node, tree, zoomed) => zoomed ? describe(node, tree)
	: `${number(tree.size)} contexts. Click a box to zoom into it, the boxes above it to leave; arrows and Enter do the same.`;

const describe = (node, tree) => [h("b", null, tree.name(node.procedure)), ` ${base(tree.procedures[node.procedure].image)} · `,
	`${percent(node.weight / tree.total)} (${number(node.weight)}), itself ${percent(node.own / tree.total)} · path ${tree.knownWords[node.known]}`];
