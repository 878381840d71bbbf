# culprit serve: who may ask, what is answered, and that it is what the verbs say.

bats_require_minimum_version 1.5.0

setup_file() {
	cd "$BATS_FILE_TMPDIR"
	"$(dirname "$CULPRIT")/tests/fixtures/makedb" small fixture.db
	"$CULPRIT" serve fixture.db >address 2>said &
	echo $! >pid
	for _ in $(seq 100); do [ -s address ] && break; sleep 0.05; done
}

teardown_file() {
	kill "$(cat "$BATS_FILE_TMPDIR/pid")" 2>/dev/null || true
}

setup() {
	cd "$BATS_FILE_TMPDIR"
	URL=$(sed -n 's/^Open //p' address)
	TOKEN=${URL#*token=}
	AT=${URL%%/\?*}
}

ask() { # PATH CURL-OPTIONS...
	curl -s -H "Authorization: Bearer $TOKEN" "${@:2}" "$AT$1"
}

code() {
	curl -s -o /dev/null -w '%{http_code}' "${@:2}" "$AT$1"
}

@test "reports are what the verbs print" {
	diff <(ask /api/top) <("$CULPRIT" top --json -i fixture.db)
	diff <(ask '/api/top?by=image&event=cpu-clock') <("$CULPRIT" top --json --by image -e cpu-clock -i fixture.db)
	diff <(ask '/api/list?procedure=hot') <("$CULPRIT" list --json -i fixture.db hot)
	diff <(ask '/api/timeline?slices=3') <("$CULPRIT" top --json --by time --slices 3 -i fixture.db)
	diff <(ask /api/epochs) <("$CULPRIT" db ls --json fixture.db)
	diff <(ask '/api/diff?before=0&before-epochs=1&after=0&after-epochs=2') <("$CULPRIT" diff --json fixture.db:1 fixture.db:2)
	ask '/api/cfg?procedure=hot' | grep -q '<svg'
	ask /api/databases | jq -e '.databases == ["fixture.db"]'
}

@test "what cannot be answered is said in words" {
	run ask '/api/list?procedure=nothing-of-that-name'
	jq -e '.error | length > 10' <<<"$output"
	[ "$(code '/api/list?procedure=nothing' -H "Authorization: Bearer $TOKEN")" = 404 ]
	[ "$(code '/api/top?by=nothing' -H "Authorization: Bearer $TOKEN")" = 404 ]
	[ "$(code '/api/top?output=x' -H "Authorization: Bearer $TOKEN")" = 400 ]
	[ "$(code '/api/record' -H "Authorization: Bearer $TOKEN")" = 404 ]
	[ "$(code '/etc/passwd' -H "Authorization: Bearer $TOKEN")" = 404 ]
	[ "$(code '/..%2f..%2fetc/passwd' -H "Authorization: Bearer $TOKEN")" = 404 ]
	[ "$(code / -X POST -H "Authorization: Bearer $TOKEN" -d x=y)" = 405 ]
	[ "$(code / -X DELETE -H "Authorization: Bearer $TOKEN")" = 405 ]
}

@test "without token, from other sites, by other names: refused" {
	[ "$(code /)" = 401 ]
	[ "$(code /api/top)" = 401 ]
	[ "$(code '/api/top?token=wrong')" = 401 ]
	[ "$(code "/api/top?token=$TOKEN")" = 401 ]
	[ "$(code / -H "Authorization: Bearer ${TOKEN%?}")" = 401 ]
	[ "$(code / -H "Authorization: Bearer $TOKEN" -H 'Host: evil.example')" = 421 ]
	[ "$(code / -H "Authorization: Bearer $TOKEN" -H 'Origin: http://evil.example')" = 403 ]
	[ "$(code / -H "Authorization: Bearer $TOKEN")" = 200 ]
}

@test "the printed address lets a browser in, and the token leaves the address" {
	run curl -s -i "$AT/?token=$TOKEN&view=calls&proc=a%26b"
	[[ $output == *"303 See Other"* ]]
	[[ $output == *"Location: /?view=calls&proc=a%26b"* ]]
	[[ $output == *"HttpOnly; SameSite=Strict"* ]]
	curl -s -c jar -o /dev/null "$URL"
	[ "$(code /api/top -b jar)" = 200 ]
}

@test "the page may load nothing from elsewhere" {
	run ask / -i
	[[ $output == *"Content-Security-Policy: default-src 'none'; script-src 'self'"* ]]
	[[ $output == *"X-Content-Type-Options: nosniff"* ]]
	for file in $(ask / | grep -o '\(src\|href\)="/[^"]*"' | cut -d'"' -f2); do
		[ "$(code "$file" -H "Authorization: Bearer $TOKEN")" = 200 ]
	done
	# Modules name each other; all of them are there.
	ask /app.js | grep -o '"\./[a-z]*\.js"' | tr -d '"' | sort -u >modules
	[ "$(wc -l <modules)" -gt 5 ]
	while read -r module; do
		[ "$(code "/${module#./}" -H "Authorization: Bearer $TOKEN")" = 200 ]
	done <modules
}

@test "fifty at once get the same answer" {
	ask /api/top >one
	seq 50 | xargs -P 50 -I{} curl -s -H "Authorization: Bearer $TOKEN" -o many.{} "$AT/api/top?by=procedure&event="
	for i in $(seq 50); do cmp "many.$i" one; done
}

@test "wrong usage and what cannot be read are told at once" {
	run -2 "$CULPRIT" serve --listen 0.0.0.0 fixture.db
	[[ $output == *token-file* ]]
	echo short >token
	run -2 "$CULPRIT" serve --listen 0.0.0.0 --token-file token fixture.db
	[[ $output == *"16 or more"* ]]
	run -2 "$CULPRIT" serve nowhere.db
	run -2 "$CULPRIT" serve --port 99999 fixture.db
	head -c 3000 /dev/urandom >damaged.db
	run -2 "$CULPRIT" serve damaged.db
	run -3 "$CULPRIT" serve --port "${AT##*:}" fixture.db
	[[ $output == *--port* ]]
}
