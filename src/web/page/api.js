// Reports, as the verbs print them with --json. What was asked once is kept until the page is left.

const kept = new Map();
const KEPT_MOST = 50;

async function ask(path, signal) {
	let response;
	try {
		response = await fetch(path, { signal, credentials: "same-origin" });
	} catch (error) {
		if (error.name === "AbortError") throw error;
		throw new Error("The server does not answer. Is 'culprit serve' still running?");
	}
	if (response.ok)
		return response.headers.get("Content-Type").startsWith("image/svg") ? response.text() : response.json();
	let words = `The server answered ${response.status}.`;
	try {
		words = (await response.json()).error ?? words;
	} catch {
		// Not every refusal has words.
	}
	throw new Error(words);
}

export function report(name, parameters = {}, signal) {
	const query = new URLSearchParams();
	for (const key of Object.keys(parameters).sort())
		if (parameters[key] !== undefined && parameters[key] !== null && parameters[key] !== "")
			query.set(key, parameters[key]);
	const path = `/api/${name}?${query}`;
	if (!kept.has(path)) {
		const promise = ask(path, signal);
		promise.catch(() => kept.delete(path));
		kept.set(path, promise);
		if (kept.size > KEPT_MOST) kept.delete(kept.keys().next().value);
	}
	return kept.get(path);
}

export const forget = () => kept.clear();
