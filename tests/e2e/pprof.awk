# Reads what protoc --decode printed of a profile, and prints a line for each sample: its values, then its
# functions with lines, innermost first, then its labels. A reference to what is not there is said.
function text(i) { return i in string ? string[i] : "?string " i }
function name_of(l,    i, s) {
	if (!(l in lines)) return "?location " l
	for (i = 1; i <= lines[l]; i++) {
		f = line_function[l, i]
		s = s (i > 1 ? "<" : "") (f in function_name ? text(function_name[f]) : "?function " f)
		if (line_number[l, i]) s = s ":" line_number[l, i]
	}
	return s
}
BEGIN { strings = 0 }
$2 == "{" { depth++; block[depth] = $1; if (depth == 1) { id = 0; n = 0; values = 0; labels = 0; start = 0 } next }
$1 == "}" {
	if (block[depth] == "sample" && depth == 1) {
		samples++
		nlocations[samples] = n; nvalues[samples] = values; nlabels[samples] = labels
	}
	depth--
	next
}
{ key = $1; sub(/:$/, "", key); value = $0; sub(/^[^:]*: /, "", value); gsub(/^"|"$/, "", value) }
depth == 0 && key == "string_table" { string[strings++] = value; next }
depth == 0 { next }
block[1] == "sample" && key == "location_id" { location[samples + 1, ++n] = value }
block[1] == "sample" && key == "value" { sample_value[samples + 1, ++values] = value }
block[depth] == "label" && key == "key" { label[samples + 1, ++labels] = value }
block[depth] == "label" && key == "str" { label_text[samples + 1, labels] = value }
block[depth] == "label" && key == "num" { label_number[samples + 1, labels] = value }
block[1] == "location" && depth == 1 && key == "id" { id = value; lines[id] = 0 }
block[1] == "location" && depth == 1 && key == "address" { address[id] = value }
block[depth] == "line" && key == "function_id" { line_function[id, ++lines[id]] = value }
block[depth] == "line" && key == "line" { line_number[id, lines[id]] = value }
block[1] == "function" && key == "id" { id = value }
block[1] == "function" && key == "name" { function_name[id] = value }
END {
	for (s = 1; s <= samples; s++) {
		out = ""
		for (i = 1; i <= nvalues[s]; i++) out = out (i > 1 ? " " : "") sample_value[s, i]
		for (i = 1; i <= nlocations[s]; i++) out = out " " name_of(location[s, i]) "@" address[location[s, i]]
		for (i = 1; i <= nlabels[s]; i++)
			out = out " " text(label[s, i]) "=" \
				((s, i) in label_text ? text(label_text[s, i]) : label_number[s, i])
		print out
	}
}
