# SPDX-License-Identifier: Apache-2.0
# bash completion of queryprof. The command itself prints the words to offer, from
# the tables that its help is made of (src/cmd/complete.c).

_queryprof() {
	local program=$1 answer word
	local IFS=$'\n'

	# The program as it was typed: ~/bin/queryprof.
	case $program in \~/*) program=$HOME/${program#\~/} ;; esac
	COMPREPLY=()
	mapfile -t answer < <("$program" --complete "$COMP_CWORD" "${COMP_WORDS[@]:1}" 2>/dev/null)
	case ${answer[0]-} in
	:files)
		return ;; # bash's own
	:command\ *)
		word=${answer[0]#:command }
		if declare -F _command_offset >/dev/null; then
			_command_offset "$word"
		elif [ "$COMP_CWORD" -eq "$word" ]; then
			mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
		fi
		return ;;
	esac
	for word in "${answer[@]}"; do
		COMPREPLY+=("$(printf %q "$word")")
	done
	# Not files, where none is meant; and no blank where more belongs to the word.
	compopt +o default +o bashdefault 2>/dev/null
	case ${answer[*]} in *[-=+]) compopt -o nospace 2>/dev/null ;; esac
}

complete -o bashdefault -o default -F _queryprof queryprof
