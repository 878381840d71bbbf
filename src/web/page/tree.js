// Calling contexts as trees that are unfolded as far as they are looked at: a million contexts are
// columns of numbers; nodes exist only for what is drawn.

export class Contexts {
	constructor(data) {
		const n = data.nodes.length;
		this.procedures = data.procedures;
		this.knownWords = data.known;
		this.total = data.total;
		this.parent = new Int32Array(n);
		this.procedure = new Int32Array(n);
		this.own = new Float64Array(n);
		this.all = new Float64Array(n);
		this.known = new Uint8Array(n);
		this.end = new Int32Array(n);
		data.nodes.forEach(([parent, procedure, own, , known], i) => {
			this.parent[i] = parent;
			this.procedure[i] = procedure;
			this.own[i] = this.all[i] = own;
			this.known[i] = known;
		});
		// Preorder: a node's children stand behind it.
		this.end.fill(0);
		for (let i = n - 1; i >= 0; i--) {
			if (!this.end[i]) this.end[i] = i + 1;
			const p = this.parent[i];
			if (p < 0) continue;
			this.all[p] += this.all[i];
			if (!this.end[p]) this.end[p] = this.end[i];
		}
		this.size = n;
	}

	name(procedure) {
		return this.procedures[procedure].name;
	}

	roots() {
		const list = [];
		for (let i = 0; i < this.size; i = this.end[i]) list.push(i);
		return list;
	}

	topDown() {
		return new Down(this, -1, this.roots(), this.total);
	}

	// Procedures with what they have themselves; below each its callers.
	bottomUp() {
		const sums = new Float64Array(this.procedures.length), ends = new Int32Array(this.procedures.length + 1);
		for (let i = 0; i < this.size; i++)
			if (this.own[i] > 0) {
				sums[this.procedure[i]] += this.own[i];
				ends[this.procedure[i] + 1]++;
			}
		for (let p = 0; p < sums.length; p++) ends[p + 1] += ends[p];
		const order = new Int32Array(ends[sums.length]), at = ends.slice();
		for (let i = 0; i < this.size; i++) if (this.own[i] > 0) order[at[this.procedure[i]]++] = i;
		const children = [];
		sums.forEach((sum, p) => {
			const items = order.subarray(ends[p], ends[p + 1]);
			if (sum > 0) children.push(new Up(this, p, items, items, this.own, sum));
		});
		return { procedure: -1, weight: this.total, own: 0, known: 0, children: children.sort(heaviest) };
	}

	// Outermost contexts of a procedure: what is below one of them is in it.
	outermost(procedure) {
		const list = [];
		for (let i = 0; i < this.size;) {
			if (this.procedure[i] === procedure) {
				list.push(i);
				i = this.end[i];
			} else i++;
		}
		return list;
	}

	callees(procedure) {
		return new Down(this, procedure, this.outermost(procedure));
	}

	callers(procedure) {
		const nodes = this.outermost(procedure);
		return new Up(this, procedure, nodes, nodes, this.all);
	}

	// Share of the whole that is in procedures of this kind.
	share(matches) {
		let sum = 0;
		for (let i = 0; i < this.size;) {
			if (matches(this.procedure[i])) {
				sum += this.all[i];
				i = this.end[i];
			} else i++;
		}
		return this.total ? sum / this.total : 0;
	}
}

const heaviest = (a, b) => b.weight - a.weight || a.procedure - b.procedure;

// Contexts of one procedure, and what they called. procedure -1: the whole, whose items are its children.
class Down {
	constructor(tree, procedure, items, weight) {
		Object.assign(this, { tree, procedure, items });
		this.weight = weight ?? items.reduce((sum, i) => sum + tree.all[i], 0);
	}

	get own() {
		return this.procedure < 0 ? 0 : this.items.reduce((sum, i) => sum + this.tree.own[i], 0);
	}

	get known() {
		return this.procedure < 0 ? 0 : this.items.reduce((worst, i) => Math.max(worst, this.tree.known[i]), 0);
	}

	get children() {
		return (this.unfolded ??= this.unfold());
	}

	unfold() {
		const { tree } = this;
		const groups = new Map();
		const put = (i) => {
			const group = groups.get(tree.procedure[i]);
			if (group) group.push(i);
			else groups.set(tree.procedure[i], [i]);
		};
		if (this.procedure < 0) this.items.forEach(put);
		else for (const i of this.items) for (let c = i + 1; c < tree.end[i]; c = tree.end[c]) put(c);
		return [...groups].map(([p, items]) => new Down(tree, p, items)).sort(heaviest);
	}
}

// Weights at some contexts, by who led there: `at` is how far up each has gone.
class Up {
	constructor(tree, procedure, items, at, weights, weight) {
		Object.assign(this, { tree, procedure, items, at, weights });
		this.weight = weight ?? items.reduce((sum, i) => sum + weights[i], 0);
	}

	get own() {
		return this.at.reduce((sum, i, k) => sum + (this.tree.parent[i] < 0 ? this.weights[this.items[k]] : 0), 0);
	}

	get known() {
		return this.items.reduce((worst, i) => Math.max(worst, this.tree.known[i]), 0);
	}

	get children() {
		return (this.unfolded ??= this.unfold());
	}

	// In columns, too: below the first level of a big profile are a million of them.
	unfold() {
		const { tree, items, at, weights } = this;
		const { parent, procedure } = tree;
		const { counts, sums } = (tree.bins ??= { counts: new Int32Array(tree.procedures.length), sums: new Float64Array(tree.procedures.length) });
		const callers = [];
		let n = 0;
		for (let k = 0; k < at.length; k++) {
			const up = parent[at[k]];
			if (up < 0) continue;
			const p = procedure[up];
			if (!counts[p]++) callers.push(p);
			sums[p] += weights[items[k]];
			n++;
		}
		const from = new Int32Array(n), to = new Int32Array(n);
		let first = 0;
		const children = callers.map((p) => {
			const end = first + counts[p];
			const child = new Up(tree, p, from.subarray(first, end), to.subarray(first, end), weights, sums[p]);
			counts[p] = first;
			sums[p] = 0;
			first = end;
			return child;
		});
		for (let k = 0; k < at.length; k++) {
			const up = parent[at[k]];
			if (up < 0) continue;
			const place = counts[procedure[up]]++;
			from[place] = items[k];
			to[place] = up;
		}
		for (const p of callers) counts[p] = 0;
		return children.sort(heaviest);
	}
}
