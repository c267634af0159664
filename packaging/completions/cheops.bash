# Completion of cheops for bash. Installed as /usr/share/bash-completion/completions/cheops.

_cheops_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_cheops_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

_cheops_scope() {
    local current=$1 previous=$2
    case $previous in
        -o | --output) _cheops_words 'text json' "$current" ;;
        --color) _cheops_words 'auto always never' "$current" ;;
        --view)
            _cheops_files "$current"
            ;;
        --service | --at) ;;
        scope) _cheops_words 'fmt check explain tokens --help' "$current" ;;
        *) [[ $current != -* ]] || _cheops_words '--service --at --view --output --color --help -o -h' "$current" ;;
    esac
}

_cheops_agent() {
    local current=$1 previous=$2
    case $previous in
        --log) _cheops_words 'error warn info debug' "$current" ;;
        -c | --config)
            _cheops_files "$current"
            ;;
        --state)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -d -- "$current")
            ;;
        --site | --api | --peer | --advertise | --threads) ;;
        *) _cheops_words '--config --check --site --api --peer --advertise --state --threads --log --help -c -h' "$current" ;;
    esac
}

_cheops_demo() {
    local current=$1 previous=$2
    case $previous in
        --forward) _cheops_words 'headers baggage trace request-id header=X-Auth-Token none' "$current" ;;
        --dir | --sample)
            _cheops_files "$current"
            ;;
        --sites | --base-port) ;;
        *) _cheops_words '--sites --base-port --dir --keep --forward --sample --json --no-ui --help -h' "$current" ;;
    esac
}

_cheops_site() {
    local current=$1 previous=$2
    case $previous in
        -c | --config | --root-cert | --root-key)
            _cheops_files "$current"
            return
            ;;
        --lifetime | --ttl | --api) return ;;
        site) _cheops_words 'init token join remove revoke root --help' "$current"; return ;;
        root) _cheops_words 'list rotate retire --help' "$current"; return ;;
    esac
    [[ $current == -* ]] || return
    case ${COMP_WORDS[2]} in
        init) _cheops_words '--config --root-cert --root-key --lifetime --help -c -h' "$current" ;;
        token) _cheops_words '--ttl --api --config --help -c -h' "$current" ;;
        join) _cheops_words '--config --help -c -h' "$current" ;;
        remove | revoke) _cheops_words '--yes --api --config --help -y -c -h' "$current" ;;
        root) _cheops_words '--force --yes --api --config --help -y -c -h' "$current" ;;
    esac
}

_cheops_sites() {
    local current=$1 previous=$2
    case $previous in
        -o | --output) _cheops_words 'table json yaml' "$current" ;;
        --color) _cheops_words 'auto always never' "$current" ;;
        -c | --config)
            _cheops_files "$current"
            ;;
        --from | --api) ;;
        *) _cheops_words '--from --watch --output --api --config --color --help -w -o -c -h' "$current" ;;
    esac
}

_cheops() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    COMPREPLY=()
    # bash makes a word of its own of the `=` in --option=value
    if [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $current == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 1]} current=
    fi
    if ((COMP_CWORD == 1)); then
        _cheops_words 'agent demo scope site sites help --help --version' "$current"
    elif [[ ${COMP_WORDS[1]} == help ]]; then
        case $previous in
            help) _cheops_words 'agent demo scope site sites' "$current" ;;
            scope) _cheops_words 'fmt check explain tokens' "$current" ;;
            site) _cheops_words 'init token join remove revoke root' "$current" ;;
        esac
    elif [[ ${COMP_WORDS[1]} == agent ]]; then
        _cheops_agent "$current" "$previous"
    elif [[ ${COMP_WORDS[1]} == demo ]]; then
        _cheops_demo "$current" "$previous"
    elif [[ ${COMP_WORDS[1]} == scope ]]; then
        _cheops_scope "$current" "$previous"
    elif [[ ${COMP_WORDS[1]} == site ]]; then
        _cheops_site "$current" "$previous"
    elif [[ ${COMP_WORDS[1]} == sites ]]; then
        _cheops_sites "$current" "$previous"
    fi
}

complete -F _cheops cheops
