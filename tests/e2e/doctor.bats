# culprit doctor: every check has an answer, and a remedy where the answer is no.

setup() {
	cd "$BATS_TEST_TMPDIR"
}

@test "--json: every check, and a remedy for each that is not ok" {
	"$CULPRIT" doctor --json > out.json
	[ "$(jq -c '[.checks[0]|has("name","ok","found","remedy")]|all' out.json)" = true ]
	for name in pmu bpf btf interpreter paranoid kernel-symbols debug-symbols space daemon; do
		[ "$(jq --arg n $name '[.checks[]|select(.name==$n)]|length' out.json)" = 1 ]
	done
	[ "$(jq '[.checks[]|select(.found=="")]|length' out.json)" = 0 ]
	[ "$(jq '[.checks[]|select((.ok|not) and (.remedy//""|length)<5)]|length' out.json)" = 0 ]
	[ "$(jq '[.checks[]|select(.ok and .remedy!=null)]|length' out.json)" = 0 ]
}

@test "text: a line for each check, exit 0 whatever is missing" {
	run "$CULPRIT" doctor
	[ "$status" -eq 0 ]
	checks=$("$CULPRIT" doctor --json | jq '.checks|length')
	[ "$(printf '%s\n' "${lines[@]}" | grep -c '^\(ok\|no\)  ')" = "$checks" ]
}

@test "what the kernel says is what is reported" {
	paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
	"$CULPRIT" doctor --json | jq -e --arg p "is $paranoid:" '.checks[]|select(.name=="paranoid").found|contains($p)'
	test -r /sys/kernel/btf/vmlinux && want=true || want=false
	[ "$("$CULPRIT" doctor --json | jq '.checks[]|select(.name=="btf").ok')" = $want ]
}

@test "an ordinary user is told how to get the rights" {
	[ "$(id -u)" = 0 ] && command -v setpriv || skip "needs root and setpriv"
	[ "$(cat /proc/sys/kernel/unprivileged_bpf_disabled)" != 0 ] || skip "BPF is free for all"
	# /tmp may be closed to others: the program is handed over as an open file.
	setpriv --reuid=65534 --regid=65534 --clear-groups sh -c "test -x '$CULPRIT'" ||
		skip "the program is not where others can run it"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$CULPRIT" doctor --json > out.json
	[ "$(jq '.checks[]|select(.name=="bpf").ok' out.json)" = false ]
	jq -e '.checks[]|select(.name=="bpf").remedy|contains("setcap")' out.json
}

@test "a damaged database is reported with what to do" {
	echo "no database at all, though it is called one" > culprit.db
	[ "$("$CULPRIT" doctor --json | jq '.checks[]|select(.name=="database").ok')" = false ]
}
