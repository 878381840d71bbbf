#compdef culprit
# Completion of culprit for zsh. Verbs and options, with what they do, are those that 'culprit help'
# prints, so that they are always the ones of the program that is installed.

_culprit_verbs() {
	local -a verbs
	verbs=(${(f)"$(culprit help 2>/dev/null | sed -nE 's/^  ([a-z]+)  +(.*)/\1:\2/p')"} 'help:what a verb does')
	_describe -t verbs verb verbs
}

# The options of a verb: "  -i, --input FILE    text" is -i and --input, of which each takes a value.
_culprit_options() { # VERB
	local -a lines options
	local line names text value name
	lines=(${(f)"$(culprit help $1 2>/dev/null)"})
	for line in $lines; do
		[[ $line =~ '^ +(-[^ ]+(, -[^ ]+)?)( [A-Z][A-Z,]*)?  +(.*)$' ]] || continue
		names=${match[1]} text=${match[4]}
		for name in ${(s:, :)names}; do
			options+=("${name%%[[=]*}:$text")
		done
	done
	_describe -t options option options
}

# What stands for the value of the option before the word; no answer: an option without a value.
_culprit_value() { # VERB OPTION
	case $2 in
	-i|--input|--map|--refine|--db|--before|--after) _files -g '*.db(-.)' ;;
	-o|--output|--counted|--token-file|--plugin) _files ;;
	-p|--pid|-t|--tid) _pids ;;
	-e|--event|--sort) _sequence compadd - ${(f)"$(culprit doctor --events 2>/dev/null)"} ;;
	--syntax) compadd att intel ;;
	-f|--format) compadd counts bolt llvm-sample edges folded pprof speedscope firefox csv ;;
	--by)
		case $1 in
		top) compadd procedure image process thread comm line cgroup cpu time ;;
		diff) compadd time share ;;
		esac
		;;
	*) return 1 ;;
	esac
}

_culprit() {
	local verb=${words[2]}
	if ((CURRENT == 2)); then
		_culprit_verbs
		return
	fi
	_culprit_value $verb ${words[CURRENT - 1]} && return
	if [[ ${words[CURRENT]} == -* ]]; then
		_culprit_options $verb
		return
	fi
	case $verb in
	help) _culprit_verbs ;;
	record) _command_names -e || _files ;;
	daemon) ((CURRENT == 3)) && compadd start stop status flush epoch ;;
	db)
		if ((CURRENT == 3)); then
			compadd ls check merge expire import
		else
			_files
		fi
		;;
	edit) _files ;;
	stats|diff) _files -g '*.db(-.)' ;;
	esac
}

_culprit "$@"
