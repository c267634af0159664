# Completion of cheops for bash. Installed as /usr/share/bash-completion/completions/cheops.

_cheops_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_cheops_files() {
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# What options have in common that several commands have; fails where it is none of them.
_cheops_common() {
    local current=$1 previous=$2
    case $previous in
        -o | --output) _cheops_words 'table json yaml' "$current" ;;
        --color) _cheops_words 'auto always never' "$current" ;;
        -c | --config) _cheops_files "$current" ;;
        --wait) _cheops_words 'all majority' "$current" ;;
        *) return 1 ;;
    esac
}

_cheops_command_scope() {
    local current=$1 previous=$2
    case $previous in
        -o | --output) _cheops_words 'text json' "$current" ;;
        --color) _cheops_words 'auto always never' "$current" ;;
        --view)
            _cheops_files "$current"
            ;;
        --app) _cheops_words 'rest sample kubernetes openstack' "$current" ;;
        --service | --at) ;;
        scope) _cheops_words 'fmt check explain tokens --help' "$current" ;;
        *) [[ $current != -* ]] || _cheops_words '--service --at --view --app --output --color --help -o -h' "$current" ;;
    esac
}

_cheops_command_agent() {
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
        --application)
            _cheops_words 'rest sample kubernetes openstack' "$current"
            ;;
        --site | --api | --peer | --advertise | --threads) ;;
        *) _cheops_words '--config --check --site --api --peer --advertise --state --application --threads --log --allow-core --help -c -h' "$current" ;;
    esac
}

_cheops_command_app() {
    local current=$1 previous=$2
    case $previous in
        -o | --output) _cheops_words 'text json' "$current" ;;
        --app)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -W 'kubernetes openstack rest sample' -- "$current"; compgen -f -- "$current")
            ;;
        --content-type)
            _cheops_words 'application/json application/merge-patch+json application/json-patch+json
                application/strategic-merge-patch+json application/apply-patch+yaml
                application/openstack-images-v2.1-json-patch' "$current"
            ;;
        --service | --header | --name | -H) ;;
        app) _cheops_words 'lint explain import --help' "$current" ;;
        explain) _cheops_words 'GET HEAD POST PUT PATCH DELETE --app --service --help' "$current" ;;
        *)
            if [[ $current == -* ]]; then
                _cheops_words '--app --service --header --content-type --name --output --help -H -o -h' "$current"
            elif [[ ${COMP_WORDS[2]} != explain ]]; then
                _cheops_files "$current"
            fi
            ;;
    esac
}

_cheops_command_demo() {
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

_cheops_command_site() {
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

_cheops_command_sites() {
    local current=$1 previous=$2
    ! _cheops_common "$current" "$previous" || return 0
    case $previous in
        --from | --api) ;;
        *) _cheops_words '--from --watch --output --api --config --color --help -w -o -c -h' "$current" ;;
    esac
}

_cheops_command_get() {
    local current=$1 previous=$2
    ! _cheops_common "$current" "$previous" || return 0
    case $previous in
        --state) _cheops_words 'settled pending stuck rejected in-doubt diverged deleted left' "$current" ;;
        --service | --site | --api) ;;
        *) _cheops_words '--service --site --state --verify --parts --watch --output --api --config --color --help -w -o -c -h' "$current" ;;
    esac
}

# What follows the options is the client's.
_cheops_command_openstack() {
    local current=$1 previous=$2
    case $previous in
        --client) _cheops_files "$current" ;;
        --scope) ;;
        openstack) _cheops_words '--scope --client --help -h --' "$current" ;;
        *) [[ $current != -* ]] || _cheops_words '--scope --client' "$current" ;;
    esac
}

_cheops_command_ops() {
    local current=$1 previous=$2
    ! _cheops_common "$current" "$previous" || return 0
    case $previous in
        --state) _cheops_words 'pending applied superseded rejected rejected-credential in-doubt' "$current" ;;
        --credential) _cheops_files "$current" ;;
        --timeout | --of | --site | --api) ;;
        ops)
            _cheops_words "get retry happened dismiss --of --site --state --watch --output --api --config --color --help -w -o -c -h" \
                "$current"
            ;;
        *)
            _cheops_words "--wait --timeout --credential --of --site --state --watch --output --api --config --color --help -w -o -c -h" "$current"
            ;;
    esac
}

_cheops_command_deps() {
    local current=$1 previous=$2
    ! _cheops_common "$current" "$previous" || return 0
    case $previous in
        --site | --api) ;;
        deps) _cheops_words 'tree why impact --help' "$current" ;;
        *) _cheops_words '--site --watch --output --api --config --color --help -w -o -c -h' "$current" ;;
    esac
}

_cheops_command_repair() {
    local current=$1 previous=$2
    ! _cheops_common "$current" "$previous" || return 0
    case $previous in
        --from | --timeout | --api) ;;
        *) _cheops_words '--from --wait --timeout --output --api --config --help -o -c -h' "$current" ;;
    esac
}

_cheops_command_replicant() {
    local current=$1 previous=$2
    ! _cheops_common "$current" "$previous" || return 0
    case $previous in
        --timeout | --api) ;;
        replicant) _cheops_words 'extend drop move adopt --help' "$current" ;;
        *)
            _cheops_words "--keep --force --wait --timeout --output --api --config --color --help -o -c -h" "$current"
            ;;
    esac
}

_cheops_command_webhooks() {
    local current=$1 previous=$2
    ! _cheops_common "$current" "$previous" || return 0
    case $previous in
        --api) ;;
        *) _cheops_words '--watch --output --api --config --color --help -w -o -c -h' "$current" ;;
    esac
}

_cheops() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local commands='agent app demo deps get openstack ops repair replicant scope site sites webhooks'
    COMPREPLY=()
    # bash makes a word of its own of the `=` in --option=value
    if [[ $previous == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $current == = ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 1]} current=
    fi
    if ((COMP_CWORD == 1)); then
        _cheops_words "$commands help --help --version" "$current"
    elif [[ ${COMP_WORDS[1]} == help ]]; then
        case $previous in
            help) _cheops_words "$commands" "$current" ;;
            app) _cheops_words 'lint explain import' "$current" ;;
            scope) _cheops_words 'fmt check explain tokens' "$current" ;;
            site) _cheops_words 'init token join remove revoke root' "$current" ;;
        esac
    elif [[ ${COMP_WORDS[1]} == [a-z]* ]] && declare -F "_cheops_command_${COMP_WORDS[1]}" >/dev/null; then
        "_cheops_command_${COMP_WORDS[1]}" "$current" "$previous"
    fi
}

complete -F _cheops cheops
