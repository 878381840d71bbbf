// What is shown stands in the address, so that a link shows the same to someone else.

const listeners = [];

export const state = () => Object.fromEntries(new URLSearchParams(location.search));

// Changes parts of the address; null takes one away.
export function go(changes, { replace = false } = {}) {
	const to = new URLSearchParams(location.search);
	for (const [name, value] of Object.entries(changes))
		if (value === null || value === undefined || value === "") to.delete(name);
		else to.set(name, value);
	const text = to.toString();
	if (`?${text}` === location.search || (!text && !location.search)) return;
	history[replace ? "replaceState" : "pushState"](null, "", text ? `/?${text}` : "/");
	for (const listener of listeners) listener();
}

export function address(changes) {
	const to = new URLSearchParams(location.search);
	for (const [name, value] of Object.entries(changes))
		if (value === null || value === undefined || value === "") to.delete(name);
		else to.set(name, value);
	return `/?${to}`;
}

export function onChange(listener) {
	listeners.push(listener);
	addEventListener("popstate", listener);
}

// What selects samples, in every view.
export const FILTERS = ["db", "epoch", "event", "time", "comm", "image", "proc", "pid"];

export function filters(s = state()) {
	return Object.fromEntries(FILTERS.filter((f) => s[f]).map((f) => [f, s[f]]));
}

export function procedureLink(row) {
	return address({ view: "procedure", procedure: nameOf(row), q: null, zoom: null, by: null });
}

// A procedure by its image and place: names need not be unique.
export function nameOf(row) {
	return row.image && row.start ? `${row.image.replace(/^.*\//, "")}!${row.start}` : row.procedure ?? row.name;
}
