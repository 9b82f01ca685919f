//! All configuration keys. The parser, the JSON schema and the reference page are generated from these tables.

/// A configuration key: its type and its description.
#[derive(Debug, Clone, Copy)]
pub struct ConfigField {
    /// Name of the key.
    pub name: &'static str,
    /// Alternative names that are accepted.
    pub also: &'static [&'static str],
    /// Type of the value.
    pub kind: ConfigFieldKind,
    /// Description: one sentence, in Markdown.
    pub about: &'static str,
}

/// Type of a configuration value.
#[derive(Debug, Clone, Copy)]
pub enum ConfigFieldKind {
    /// A string.
    Text,
    /// A string with references such as `${VAR}`.
    Template,
    /// One of these strings.
    Choice(&'static [&'static str]),
    /// A boolean.
    Flag,
    /// An integer of at least this value.
    Count(u64),
    /// An integer number of milliseconds.
    Millis,
    /// A port number.
    Port,
    /// A list of strings.
    Texts,
    /// A list of strings with references.
    Templates,
    /// A map of strings with references.
    TemplateMap,
    /// A map of milliseconds.
    MillisMap,
    /// A boolean, or an object with these keys.
    OffOr(&'static [ConfigField]),
    /// An object with these keys.
    Object(&'static [ConfigField]),
    /// Servers by id.
    Servers,
    /// A list of permission rules.
    Rules,
    /// A map of objects with these keys.
    Objects(&'static [ConfigField]),
}

const fn field(name: &'static str, kind: ConfigFieldKind, about: &'static str) -> ConfigField {
    ConfigField { name, also: &[], kind, about }
}

impl ConfigField {
    const fn with_aliases(mut self, also: &'static [&'static str]) -> Self {
        self.also = also;
        self
    }

    /// Reports whether this is the key's name or one of its alternatives.
    pub fn matches_key(&self, key: &str) -> bool {
        self.name == key || self.also.contains(&key)
    }
}

/// Keys of the backoff settings.
pub const BACKOFF: &[ConfigField] = &[
    field("attempts", ConfigFieldKind::Count(1), "Maximum number of consecutive connection attempts; 5."),
    field(
        "baseMs",
        ConfigFieldKind::Millis,
        "Upper bound of the wait before the second attempt; doubles with each attempt. 500.",
    ),
    field("maxMs", ConfigFieldKind::Millis, "Upper bound of every wait; 60000."),
];

/// Keys of the login settings.
pub const OAUTH: &[ConfigField] = &[
    field("authorization_url", ConfigFieldKind::Template, "Authorization endpoint.")
        .with_aliases(&["authorizationUrl"]),
    field("token_url", ConfigFieldKind::Template, "Token endpoint.").with_aliases(&["tokenUrl"]),
    field("registration_url", ConfigFieldKind::Template, "Client registration endpoint.")
        .with_aliases(&["registrationUrl"]),
    field("device_url", ConfigFieldKind::Template, "Device authorization endpoint."),
    field(
        "issuer",
        ConfigFieldKind::Template,
        "Issuer identifier of the authorization server; overrides the one that the server names.",
    ),
    field("client_id", ConfigFieldKind::Template, "Client id.").with_aliases(&["clientId"]),
    field("client_secret", ConfigFieldKind::Template, "Client secret.").with_aliases(&["clientSecret"]),
    field(
        "client_metadata_url",
        ConfigFieldKind::Template,
        "URL of a client metadata document, used as the client id if the authorization server supports it.",
    )
    .with_aliases(&["clientMetadataUrl"]),
    field("scope", ConfigFieldKind::Template, "Scopes to request, separated by spaces."),
    field(
        "callback_port",
        ConfigFieldKind::Port,
        "Loopback port for the login callback at `/callback`; any free port by default.",
    )
    .with_aliases(&["callbackPort"]),
    field("account", ConfigFieldKind::Text, "Account to use if there are several; `--account` takes precedence."),
    field(
        "grant",
        ConfigFieldKind::Choice(&["person", "client_credentials", "enterprise", "workload"]),
        "Grant type: a user login, the client's own credentials, an enterprise identity provider, or workload identity; \
         `person`.",
    ),
    field(
        "private_key",
        ConfigFieldKind::Template,
        "For `client_credentials`: the client's private key, PKCS #8 in PEM.",
    ),
    field("private_key_file", ConfigFieldKind::Template, "File with the private key."),
    field("signing_algorithm", ConfigFieldKind::Template, "Signature algorithm; `ES256`."),
    field(
        "idp_token_url",
        ConfigFieldKind::Template,
        "For `enterprise`: token exchange endpoint of the identity provider.",
    ),
    field("idp_client_id", ConfigFieldKind::Template, "Client id at the identity provider."),
    field("idp_client_secret", ConfigFieldKind::Template, "Client secret."),
    field("id_token", ConfigFieldKind::Template, "The user's ID token."),
    field("id_token_file", ConfigFieldKind::Template, "File with this token; read on each use."),
    field("assertion", ConfigFieldKind::Template, "For `workload`: the workload's token."),
    field("assertion_file", ConfigFieldKind::Template, "File with this token; read on each use."),
    field(
        "dpop",
        ConfigFieldKind::Choice(&["auto", "always", "never"]),
        "Whether tokens are bound to a client key (DPoP); `auto` binds them if the server requires it.",
    ),
];

/// Keys of a server.
pub const SERVER: &[ConfigField] = &[
    field(
        "type",
        ConfigFieldKind::Text,
        "`stdio`, `http` or `sse`; inferred by default: `command` means stdio, `url` means the HTTP transport that the server \
         supports.",
    )
    .with_aliases(&["transport"]),
    field("command", ConfigFieldKind::Template, "The program to start: a path, or a name looked up in `PATH`. Never a shell command line."),
    field("args", ConfigFieldKind::Templates, "Arguments, passed unchanged."),
    field("cwd", ConfigFieldKind::Template, "Working directory, relative to the defining file; `${project}` is the project's directory. Default: the project's directory for an entry of a project, a private directory otherwise."),
    field("env", ConfigFieldKind::TemplateMap, "Variables in addition to the default list that every server receives."),
    field("envVars", ConfigFieldKind::Texts, "Names of variables to inherit from your environment.").with_aliases(&["env_vars"]),
    field("envFile", ConfigFieldKind::Template, "File of `NAME=value` lines with further variables; `env` takes precedence."),
    field("inheritEnv", ConfigFieldKind::Flag, "Passes on the whole environment instead of the default list."),
    field("url", ConfigFieldKind::Template, "URL of a remote server."),
    field("httpUrl", ConfigFieldKind::Template, "URL of a remote server that uses Streamable HTTP only."),
    field("headers", ConfigFieldKind::TemplateMap, "Headers sent with every request."),
    field("headersCommand", ConfigFieldKind::Templates, "Program and arguments that print further headers as a JSON object of strings; runs before the first request and again after a 401."),
    field("enabled", ConfigFieldKind::Flag, "`false` disables the server; as the only key of an entry, it disables the server of a lower layer."),
    field("disabled", ConfigFieldKind::Flag, "The opposite of `enabled`, for compatibility with other clients."),
    field("timeout", ConfigFieldKind::Millis, "Maximum time of a call without a response or progress update; 30000.")
        .with_aliases(&["request_timeout_ms", "requestTimeoutMs"]),
    field("startupTimeoutMs", ConfigFieldKind::Millis, "Maximum time for the server to become ready; 60000."),
    field("toolTimeouts", ConfigFieldKind::MillisMap, "`timeout` of single tools, by name or glob."),
    field("trust", ConfigFieldKind::Flag, "Allows the server's tools if no permission rule matches."),
    field("includeTools", ConfigFieldKind::Texts, "Tools to offer, by name or glob; all by default."),
    field("excludeTools", ConfigFieldKind::Texts, "Tools to withhold, by name or glob; takes precedence over `includeTools`."),
    field("debug", ConfigFieldKind::Flag, "Shows the server's messages, as `--debug` does for all servers."),
    field(
        "lazy",
        ConfigFieldKind::Flag,
        "Starts the server on first use instead of immediately, and once to learn its tools.",
    ),
    field("reconnect", ConfigFieldKind::OffOr(BACKOFF), "Reconnection settings; `false` disables reconnection."),
    field("maxMessageBytes", ConfigFieldKind::Count(1), "Maximum bytes of one message, at most 268435456; 8388608."),
    field("maxConcurrent", ConfigFieldKind::Count(1), "Maximum number of concurrent calls; 1 runs them one at a time."),
    field("healthCheckMs", ConfigFieldKind::Millis, "Idle time after which a health check is sent."),
    field("idleStopMs", ConfigFieldKind::Millis, "Idle time after which a lazy server is stopped; 600000."),
    field("cacheTtlMs", ConfigFieldKind::Millis, "Lifetime of cached results of tools that declare themselves read-only."),
    field(
        "sharing",
        ConfigFieldKind::Choice(&["shared", "user", "session"]),
        "Which clients of `wharf serve` use the same process: all, those of one key, or each session its own; `shared`.",
    ),
    field(
        "maxInstances",
        ConfigFieldKind::Count(1),
        "Maximum number of further processes for clients of `wharf serve` that cannot share one; 4.",
    ),
    field("oauth", ConfigFieldKind::Object(OAUTH), "Login settings that cannot be discovered."),
    field("proxy", ConfigFieldKind::Template, "Proxy URL; proxy variables in the environment are ignored."),
    field("ca", ConfigFieldKind::Templates, "PEM files of CA certificates trusted in addition to the system's."),
    field("clientCert", ConfigFieldKind::Template, "PEM file with the client certificate and its private key."),
    field(
        "mirrorArguments",
        ConfigFieldKind::Flag,
        "Copies arguments into headers where a tool's schema asks for it; `false` withholds such tools.",
    ),
    field("name", ConfigFieldKind::Text, "Id of a server in a list of servers (`WHARF_MCP_SERVERS`)."),
    field("description", ConfigFieldKind::Text, "Description for humans; not used."),
];

const GLOBAL_SETTINGS: &[ConfigField] = &[
    field("timeout", ConfigFieldKind::Millis, "Default `timeout` of servers."),
    field("debug", ConfigFieldKind::Flag, "`debug` for all servers."),
];

/// Keys under `mcp`.
pub const MCP: &[ConfigField] = &[
    field("enabled", ConfigFieldKind::Flag, "`false` disables the servers under `mcp` in this file."),
    field(
        "servers",
        ConfigFieldKind::Servers,
        "Servers by id; an id has 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `_` and `-`.",
    ),
    field("globalSettings", ConfigFieldKind::Object(GLOBAL_SETTINGS), "Settings for all servers of this file."),
];

/// Keys of a permission rule.
pub const RULE: &[ConfigField] = &[
    field("tool", ConfigFieldKind::Text, "Tools that the rule applies to: `mcp__<server>__<tool>`, a glob."),
    field(
        "pattern",
        ConfigFieldKind::Text,
        "Arguments that the rule applies to: `key=glob`, or a glob over every value.",
    ),
    field("action", ConfigFieldKind::Choice(&["allow", "ask", "deny"]), "Action for matching calls."),
    field(
        "definedIn",
        ConfigFieldKind::Text,
        "Absolute path of the file that defines the server, if it is not your own.",
    ),
];

/// Keys that are valid in every file.
pub const FILE: &[ConfigField] = &[
    field(
        "mcpServers",
        ConfigFieldKind::Servers,
        "Servers by id; an id has 1 to 64 characters of `A-Z`, `a-z`, `0-9`, `_` and `-`.",
    ),
    field("mcp", ConfigFieldKind::Object(MCP), "Alternative layout for servers, with `version` 1."),
    field("version", ConfigFieldKind::Count(1), "Version of the layout with `mcp`: 1."),
    field("expandEnv", ConfigFieldKind::Flag, "`false` disables the expansion of `${VAR}` in this file."),
    field(
        "permissions",
        ConfigFieldKind::Rules,
        "Permission rules for tool calls; a project's file may only deny or ask. See permissions.md.",
    ),
    field("$schema", ConfigFieldKind::Text, "URL of the JSON schema, for editors; not used by Wharf."),
    field("schema", ConfigFieldKind::Count(1), "Version of the file format: 1."),
];

/// Keys of a model provider.
pub const PROVIDER: &[ConfigField] = &[
    field(
        "format",
        ConfigFieldKind::Choice(&["anthropic", "chat", "responses"]),
        "API format: Anthropic messages, OpenAI chat completions (as most local servers use) or OpenAI responses.",
    ),
    field("baseUrl", ConfigFieldKind::Template, "Base URL of the API, with or without `/v1`."),
    field(
        "apiKey",
        ConfigFieldKind::Template,
        "API key, preferably as `${VAR}` or `${secret:NAME}`; local servers need none.",
    ),
    field("headers", ConfigFieldKind::TemplateMap, "Headers sent with every request."),
    field("model", ConfigFieldKind::Text, "Default model, used if only the provider is given."),
    field("maxTokens", ConfigFieldKind::Count(1), "Maximum tokens of a response, including thinking."),
    field("contextTokens", ConfigFieldKind::Count(1024), "Size of the model's context window in tokens."),
    field(
        "toolTokens",
        ConfigFieldKind::Count(0),
        "Tokens of tool definitions above which the model searches for tools; 5 % of the context, at least 4000.",
    ),
    field(
        "effort",
        ConfigFieldKind::Choice(&["low", "medium", "high"]),
        "Reasoning effort; the model's default if absent.",
    ),
    field("proxy", ConfigFieldKind::Template, "Proxy URL; proxy variables in the environment are ignored."),
    field("ca", ConfigFieldKind::Templates, "PEM files of CA certificates trusted in addition to the system's."),
];

/// Keys of a profile of `wharf serve`.
pub const PROFILE: &[ConfigField] = &[
    field("servers", ConfigFieldKind::Texts, "Servers to serve, by name or glob; all by default."),
    field("tools", ConfigFieldKind::Texts, "Tools to serve, as `<server>__<tool>`, by name or glob; all by default."),
    field("excludeTools", ConfigFieldKind::Texts, "Tools not to serve; takes precedence over `tools`."),
    field(
        "names",
        ConfigFieldKind::Choice(&["server", "plain"]),
        "Names of tools and prompts: `<server>__<name>`, or the server's own; `server`.",
    ),
    WAIT_FOR_ANSWER,
    field(
        "rules",
        ConfigFieldKind::Rules,
        "Permission rules for the clients of the profile, besides `permissions`; a deny of either always decides.",
    ),
    field(
        "surface",
        ConfigFieldKind::Choice(&["tools", "search"]),
        "What clients see: all tools, or two tools that find and call them; `tools`.",
    ),
];

const WAIT_FOR_ANSWER: ConfigField = field(
    "waitForAnswerMs",
    ConfigFieldKind::Count(0),
    "Milliseconds that a call waits for `wharf answer` if it needs permission and its client cannot be asked, at most 600000; 0, \
     which refuses it at once.",
);

/// Keys of `serve`.
pub const SERVE: &[ConfigField] = &[WAIT_FOR_ANSWER];

/// Keys that are valid in the user's own files only.
pub const USER: &[ConfigField] = &[
    field(
        "toolNames",
        ConfigFieldKind::Choice(&[
            "mcp__<server>__<tool>",
            "mcp_<server>_<slug>_<hash8>",
            "<tool>@<server>",
            "<server>::<tool>",
            "mcp_<server>_<tool>",
        ]),
        "Display format of tool names; models receive a format that they support.",
    ),
    field("healthCheckMs", ConfigFieldKind::Millis, "Default `healthCheckMs` of servers."),
    field(
        "resultLimit",
        ConfigFieldKind::Count(256),
        "Maximum bytes of a result passed to an agent; the rest is written to a file.",
    ),
    field("cacheTtlMs", ConfigFieldKind::Millis, "Default `cacheTtlMs` of servers."),
    field("reconnect", ConfigFieldKind::Object(BACKOFF), "Default `reconnect` of servers."),
    field("tokenStore", ConfigFieldKind::Choice(&["auto", "file", "keyring"]), "Storage for login tokens."),
    field(
        "secretCommand",
        ConfigFieldKind::Texts,
        "Program that returns secrets for `${secret:NAME}`, with `{name}` in its arguments; its output is the secret.",
    ),
    field("model", ConfigFieldKind::Text, "The model of the agent: `provider/model`, or either alone. See agent.md."),
    field("providers", ConfigFieldKind::Objects(PROVIDER), "Model providers, by a custom or built-in name."),
    field("profiles", ConfigFieldKind::Objects(PROFILE), "Profiles of `wharf serve`, by name. See serve.md."),
    field("serve", ConfigFieldKind::Object(SERVE), "Settings of `wharf serve`; those of a profile take precedence."),
];
