-- Chooses a backend by the scope of a request: HAProxy's answer to the question that Cheops is asked.
--
-- The prototype of Euro-Par 2021 (section 4) put an HAProxy before the services, with a Lua script that takes the scope
-- from a header and names the backend to forward to. This does the same for the plain scopes of that paper's section 3.2,
-- such as {app: Site1} or {compute: Site1, image: Site2}. It is our own, written from the paper's description, and knows
-- no functions, operators, errors or other carriers of the language. Two ways of calling it are measured:
--
--   lua.scope_backend(service)                        The prototype's: a sample fetch, which reads the header and
--                                                     interprets it for every request.
--   req.fhdr(Scope),lua.scope_backend_known(service)  The quickest that we found: a converter, for which HAProxy builds
--                                                     no transaction object, called only where there is a scope, which
--                                                     keeps what it has understood.
local find, gmatch = string.find, string.gmatch

-- Sites that exist, and the backend of each; any other site is answered by the backend "unknown".
local BACKENDS = { Site1 = "Site1", Site2 = "Site2" }
local LOCAL, UNKNOWN = "Site1", "unknown"

-- Nothing is built but the strings of the names, up to the one that is asked for.
local function backend_of(scope, service)
    local _, _, body = find(scope, "^%s*{(.*)}%s*$")
    if body == nil then
        return UNKNOWN
    end
    for name, site in gmatch(body, "([%w_%-]+)%s*:%s*([%w_%-%.]+)") do
        if name == service then
            return BACKENDS[site] or UNKNOWN
        end
    end
    return LOCAL
end

core.register_fetches("scope_backend", function(txn, service)
    local scope = txn.sf:req_fhdr("Scope")
    if scope == nil then
        return LOCAL
    end
    return backend_of(scope, service)
end)

-- What has been understood: service, text, backend. It starts anew when full, so that no client can make it grow.
local KNOWN_MAX = 1000
local known, known_count = {}, 0

core.register_converters("scope_backend_known", function(scope, service)
    local texts = known[service]
    local backend = texts and texts[scope]
    if backend == nil then
        backend = backend_of(scope, service)
        if known_count == KNOWN_MAX then
            known, known_count, texts = {}, 0, nil
        end
        if texts == nil then
            texts = {}
            known[service] = texts
        end
        texts[scope] = backend
        known_count = known_count + 1
    end
    return backend
end)
