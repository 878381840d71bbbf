# Completion of culprit for bash.
# shellcheck shell=bash

# Databases and folders.
_culprit_databases() {
	local IFS=$'\n'
	compopt -o filenames
	COMPREPLY=($(compgen -f -X '!*.db' -- "$1") $(compgen -d -- "$1"))
}

# The last name of a comma-separated list.
_culprit_list() { # WORD NAMES
	local before=
	[[ $1 == *,* ]] && before=${1%,*},
	COMPREPLY=($(compgen -P "$before" -W "$2" -- "${1##*,}"))
	__ltrim_colon_completions "$1" 2>/dev/null
	compopt -o nospace
}

_culprit_events() {
	_culprit_list "$1" "$(culprit doctor --events 2>/dev/null)"
}

# A key of the rows of the database that the command line names.
_culprit_rows() { # KEY WORD [TOP_OPTION...]
	local key=$1 word=$2 i input=() IFS=$'\n'
	shift 2
	for ((i = 2; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i - 1]} == -i || ${COMP_WORDS[i - 1]} == --input ]] &&
			input=(-i "${COMP_WORDS[i]}")
	done
	COMPREPLY=($(compgen -W "$(culprit top --json -n 500 "${input[@]}" "$@" 2>/dev/null |
		sed -n "s/.*\"$key\": \"\([^\"]*\)\".*/\1/p" | sed 's/[][() *?&<>;|$`!'"'"'\\]/\\&/g' | sort -u)" -- "$word"))
}

_culprit_report() { # PREVIOUS WORD
	case $1 in
	-i | --input) _culprit_databases "$2" ;;
	-e | --event | --sort) _culprit_events "$2" ;;
	--comm) _culprit_rows comm "$2" --by comm ;;
	--image) _culprit_rows image "$2" --by image ;;
	--proc) _culprit_rows procedure "$2" ;;
	-p | --pid) COMPREPLY=($(compgen -W "$(cd /proc && echo [0-9]*)" -- "$2")) ;;
	--epoch) COMPREPLY=($(compgen -W "last" -- "$2")) ;;
	--time | -n | --rows | --min-share) ;;
	*) return 1 ;;
	esac
}

_culprit_sampling() { # PREVIOUS WORD
	case $1 in
	-e | --event) _culprit_events "$2" ;;
	-o | --output | --db) _culprit_databases "$2" ;;
	-p | --pid | -t | --tid) _culprit_list "$2" "$(cd /proc && echo [0-9]*)" ;;
	-F | -c | -C | -G | -D | --freq | --count | --cpu | --cgroup | --delay | --budget) ;;
	--drain | --flush | --keep-days | --keep-size) ;;
	*) return 1 ;;
	esac
}

_culprit() {
	local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local verbs="record daemon top list why cfg values calls paths bursts streams stats diff export serve edit db doctor help"
	local filters="-i -e -p --input --event --time --epoch --comm --image --proc --pid --help"
	local report="$filters --json --no-pager"
	local sampling="-e -F -c -C -G -o --event --freq --count --cpu --cgroup --output --budget --calibrate --per-process --values --values=upcall --only --plugin --edges --no-edges --excursions --bpf --no-bpf --help"
	local options=

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		COMPREPLY=($(compgen -W "$verbs --version --help" -- "$word"))
		return
	fi
	case ${COMP_WORDS[1]} in
	record)
		_culprit_sampling "$previous" "$word" && return
		options="$sampling -a -g -p -t -D -q --all-cpus --pid --tid --delay --no-inherit --quiet --exact --bursts --payload --boring --all-checks --checks --no-objects --paths --full --metric --context --libs --atomic --per-thread --refine --counted"
		[[ $word == -* ]] || COMPREPLY=($(compgen -c -- "$word"))
		;;
	daemon)
		_culprit_sampling "$previous" "$word" && return
		options="$sampling -f --foreground --db --drain --flush --keep-days --keep-size --json"
		((COMP_CWORD == 2)) && options="start stop status flush epoch"
		;;
	top)
		[[ $previous == --by ]] && {
			COMPREPLY=($(compgen -W "procedure image process thread comm line cgroup cpu time" -- "$word"))
			return
		}
		_culprit_report "$previous" "$word" && return
		options="$report -n --rows --by --children --live --slices --of --min-share --sort"
		;;
	list)
		[[ $previous == --syntax ]] && {
			COMPREPLY=($(compgen -W "att intel" -- "$word"))
			return
		}
		_culprit_report "$previous" "$word" && return
		options="$report --syntax --no-source"
		[[ $word == -* ]] || _culprit_rows procedure "$word"
		;;
	why)
		[[ $previous == --syntax ]] && {
			COMPREPLY=($(compgen -W "att intel" -- "$word"))
			return
		}
		_culprit_report "$previous" "$word" && return
		options="$report -n --rows --all --syntax --no-source"
		[[ $word == -* ]] || _culprit_rows procedure "$word"
		;;
	cfg)
		case $previous in
		--syntax)
			COMPREPLY=($(compgen -W "att intel" -- "$word"))
			return
			;;
		-o | --output)
			local IFS=$'\n'
			compopt -o filenames
			COMPREPLY=($(compgen -f -- "$word"))
			return
			;;
		esac
		_culprit_report "$previous" "$word" && return
		options="$filters -o --output --full --all --syntax"
		[[ $word == -* ]] || _culprit_rows procedure "$word"
		;;
	calls)
		_culprit_report "$previous" "$word" && return
		options="$report -n -o --rows --output --top-down --bottom-up --hot --size --folded --svg --check --at --new --sites --paths --metric --min-share"
		;;
	paths)
		_culprit_report "$previous" "$word" && return
		options="$report -n --rows --min-share --metric --procedures --compare"
		;;
	bursts)
		_culprit_report "$previous" "$word" && return
		options="$report -n --rows"
		;;
	serve)
		options="-i -P --input --port --listen --token-file --host --help"
		;;
	streams)
		[[ $previous == --by ]] && {
			COMPREPLY=($(compgen -W "context" -- "$word"))
			return
		}
		_culprit_report "$previous" "$word" && return
		options="$report -n --rows --length --coverage --heat --compare --by --offline --raw"
		;;
	values)
		case $previous in
		--syntax)
			COMPREPLY=($(compgen -W "att intel" -- "$word"))
			return
			;;
		--plugin)
			compopt -o filenames
			COMPREPLY=($(compgen -f -- "$word"))
			return
			;;
		--kind)
			COMPREPLY=($(compgen -W "result source address stride latency conflict float length entry target plugin" -- "$word"))
			return
			;;
		esac
		_culprit_report "$previous" "$word" && return
		options="$report -n --rows --targets --strides --latency --by-call-site --kind --plugin --syntax"
		[[ $word == -* ]] || _culprit_rows procedure "$word"
		;;
	stats)
		_culprit_report "$previous" "$word" && return
		options="$report -n --rows --min-share --by-epoch --normalise"
		[[ $word == -* ]] || _culprit_databases "$word"
		;;
	diff)
		case $previous in
		--by)
			COMPREPLY=($(compgen -W "time share" -- "$word"))
			return
			;;
		--fail-over) return ;;
		esac
		_culprit_report "$previous" "$word" && return
		options="$report -n --rows --min-share --by --before --after --fail-over"
		[[ $word == -* ]] || _culprit_databases "$word"
		;;
	export)
		case $previous in
		-f | --format)
			COMPREPLY=($(compgen -W "counts bolt llvm-sample edges folded pprof speedscope firefox csv" -- "$word"))
			return
			;;
		-o | --output)
			compopt -o filenames
			COMPREPLY=($(compgen -f -- "$word"))
			return
			;;
		esac
		_culprit_report "$previous" "$word" && return
		options="$filters -f -o --format --output --flat"
		;;
	edit)
		case $previous in
		--only | --skip) return ;;
		--map) _culprit_databases "$word" && return ;;
		--search)
			COMPREPLY=($(compgen -W "greedy random" -- "$word"))
			return
			;;
		esac
		options="-o --output --disambiguate --map --search --null --exact --paths --context --full --metric --atomic --per-thread --refine --strict --report --only --skip --json --help"
		[[ $word == -* ]] || {
			compopt -o filenames
			COMPREPLY=($(compgen -f -- "$word"))
			return
		}
		;;
	db)
		case $previous in
		-i | -o | --input | --output | ls | check | merge | expire)
			[[ $word == -* ]] || { _culprit_databases "$word" && return; }
			;;
		--age | --before | --size) return ;;
		esac
		case $COMP_CWORD,${COMP_WORDS[2]} in
		2,*) options="ls check merge import expire" ;;
		*,ls) options="-i --input --json --help" ;;
		*,check) options="-i --input --help" ;;
		*,merge) options="-o --output --help" ;;
		*,import)
			options="-o --output -l --label --help"
			[[ $word == -* ]] || {
				compopt -o filenames
				COMPREPLY=($(compgen -f -- "$word"))
				return
			}
			;;
		*,expire) options="-i --input --age --before --size --help" ;;
		esac
		((COMP_CWORD > 2)) && [[ $word != -* ]] && _culprit_databases "$word"
		;;
	doctor) options="--json --events --help" ;;
	help) options=$verbs ;;
	esac
	((${#COMPREPLY[@]})) || COMPREPLY=($(compgen -W "$options" -- "$word"))
}

complete -F _culprit culprit
