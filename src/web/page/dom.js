// Elements and texts. Names in a profile are other people's text: they become text nodes, never markup.

export function h(tag, attributes, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes ?? {})) {
		if (value === null || value === undefined || value === false) continue;
		if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
		else if (name === "style") Object.assign(element.style, value);
		else element.setAttribute(name, value === true ? "" : value);
	}
	element.append(...children.flat().filter((c) => c !== null && c !== undefined && c !== false));
	return element;
}

export const percent = (share, digits = 2) =>
	share === null || share === undefined ? "" : `${(100 * share).toFixed(digits)}%`;

export const number = (n) => (n === null || n === undefined ? "" : Math.round(n).toLocaleString("en"));

export function short(n) {
	if (n === null || n === undefined) return "";
	for (const [unit, word] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
		if (Math.abs(n) >= unit) return `${(n / unit).toPrecision(3)}${word}`;
	return `${Number(n.toPrecision(3))}`;
}

export const base = (path) => (path ?? "").replace(/^.*\//, "") || path || "(unknown)";

export function clock(seconds, days = false) {
	const when = new Date(1000 * seconds);
	const time = when.toLocaleTimeString("en-GB");
	return days ? `${when.toLocaleDateString("sv")} ${time}` : time;
}

// What a view shows instead of a report.
export const empty = (...words) => h("p", { class: "empty" }, ...words);
export const failure = (error) => h("p", { class: "failure", role: "alert" }, error.message);

// For those who listen to the page.
export function announce(text) {
	document.getElementById("live").textContent = text;
}

// The same name has the same colour everywhere.
export function hue(text) {
	let sum = 2166136261;
	for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 16777619);
	return (sum >>> 0) % 360;
}
