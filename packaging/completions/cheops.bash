# Completion of cheops for bash. Installed as /usr/share/bash-completion/completions/cheops.

_cheops_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_cheops_scope() {
    local current=$1 previous=$2
    # bash makes a word of its own of the `=` in --option=value
    if [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $current == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 1]} current=
    fi
    case $previous in
        -o | --output) _cheops_words 'text json' "$current" ;;
        --color) _cheops_words 'auto always never' "$current" ;;
        --view)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            ;;
        --service | --at) ;;
        scope) _cheops_words 'fmt check explain tokens --help' "$current" ;;
        *) [[ $current != -* ]] || _cheops_words '--service --at --view --output --color --help -o -h' "$current" ;;
    esac
}

_cheops_agent() {
    local current=$1 previous=$2
    if [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $current == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 1]} current=
    fi
    case $previous in
        --log) _cheops_words 'error warn info debug' "$current" ;;
        -c | --config)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            ;;
        --site | --api | --peer | --threads) ;;
        *) _cheops_words '--config --check --site --api --peer --threads --log --help -c -h' "$current" ;;
    esac
}

_cheops_demo() {
    local current=$1 previous=$2
    if [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $current == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 1]} current=
    fi
    case $previous in
        --forward) _cheops_words 'headers baggage trace request-id header=X-Auth-Token none' "$current" ;;
        --dir | --sample)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            ;;
        --sites | --base-port) ;;
        *) _cheops_words '--sites --base-port --dir --keep --forward --sample --json --no-ui --help -h' "$current" ;;
    esac
}

_cheops() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _cheops_words 'agent demo scope help --help --version' "$current"
    elif [[ ${COMP_WORDS[1]} == help ]]; then
        case $previous in
            help) _cheops_words 'agent demo scope' "$current" ;;
            scope) _cheops_words 'fmt check explain tokens' "$current" ;;
        esac
    elif [[ ${COMP_WORDS[1]} == agent ]]; then
        _cheops_agent "$current" "$previous"
    elif [[ ${COMP_WORDS[1]} == demo ]]; then
        _cheops_demo "$current" "$previous"
    elif [[ ${COMP_WORDS[1]} == scope ]]; then
        _cheops_scope "$current" "$previous"
    fi
}

complete -F _cheops cheops
